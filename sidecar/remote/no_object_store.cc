// Where the parts that need a GPU are built alone (object_store.cc is the counterpart): finds nothing, and says why.
#include "sidecar/remote/object_store.h"
#include "sidecar/remote/url.h"

namespace headrace::side {

class Transfers::Loop {};
Transfers::Transfers(const RetryPolicy&) {}
Transfers::~Transfers() = default;

class ObjectListing::Finder {
 public:
  explicit Finder(std::vector<WantedPath> paths) : paths_(std::move(paths)) {}
  Status Refusal(size_t path) const {
    return Unavailable("this build reads no object stores, such as " + ShownPath(paths_[path].path) +
                       ": it is of the parts that need a GPU alone; name files of a volume");
  }

 private:
  const std::vector<WantedPath> paths_;
};
ObjectListing::ObjectListing(std::vector<WantedPath> paths, Transfers*)
    : finder_(std::make_unique<Finder>(std::move(paths))) {}
ObjectListing::~ObjectListing() = default;
Status ObjectListing::AwaitFirst(size_t path) { return finder_->Refusal(path); }
Result<std::vector<FoundObject>> ObjectListing::Next(size_t path) { return finder_->Refusal(path); }
void ObjectListing::SetHurry(bool) {}

ObjectStore::ObjectStore(const ObjectStoreOptions& options, Environment environment, const RetryPolicy& policy)
    : context_{options, std::move(environment), Transfers(policy)} {}

std::unique_ptr<ObjectListing> ObjectStore::List(const std::vector<std::string>& paths) {
  std::vector<WantedPath> wanted;
  for (const std::string& path : paths) wanted.push_back({path});
  return std::make_unique<ObjectListing>(std::move(wanted), &context_.transfers);
}
void ObjectStore::Stop() {}

}  // namespace headrace::side
