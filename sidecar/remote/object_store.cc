#include "sidecar/remote/object_store.h"

#include "sidecar/remote/url.h"

namespace headrace::side {

ObjectStore::ObjectStore(const ObjectStoreOptions& options, Environment environment, const RetryPolicy& policy)
    : context_{options, std::move(environment), Transfers(policy)} {}

std::unique_ptr<ObjectListing> ObjectStore::List(const std::vector<std::string>& paths) {
  std::vector<WantedPath> wanted;
  for (const std::string& path : paths) wanted.push_back({path, ServiceOf(path)});
  return std::make_unique<ObjectListing>(std::move(wanted), &context_.transfers);
}

std::unique_ptr<Object> ObjectStore::Open(const FoundObject& found, std::atomic<uint64_t>* bytes_read) {
  return std::make_unique<Object>(ServiceOf(found.path), &context_.transfers, found.path, found.size, found.version,
                                  bytes_read);
}

void ObjectStore::Stop() { context_.transfers.Stop(); }

Service* ObjectStore::ServiceOf(const std::string& path) {
  const std::lock_guard lock(mutex_);
  auto& service = services_[SplitUrl(path).scheme];
  if (service == nullptr) service = MakeService(SplitUrl(path).scheme, &context_);
  return service.get();
}

}  // namespace headrace::side
