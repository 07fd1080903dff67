// The object stores that a source's files lie in: s3://, gs://, http:// and https://.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/spec/input_spec.h"
#include "sidecar/remote/find_objects.h"
#include "sidecar/remote/object.h"
#include "sidecar/remote/service.h"

namespace headrace::side {

// Any thread. Outlives the objects that it opens.
class ObjectStore {
 public:
  explicit ObjectStore(const ObjectStoreOptions& options, Environment environment = ProcessEnvironment(),
                       const RetryPolicy& policy = {});

  // The objects that paths name. REQUIRES: RemotePathError has nothing against them. This outlives the listing.
  std::unique_ptr<ObjectListing> List(const std::vector<std::string>& paths);
  // `bytes_read` outlives the object.
  std::unique_ptr<Object> Open(const FoundObject& found, std::atomic<uint64_t>* bytes_read);
  // Ends all reads, those to come included, with Cancelled.
  void Stop();

 private:
  Service* ServiceOf(const std::string& path);

  ServiceContext context_;
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Service>> services_;  // by scheme; guarded by the mutex
};

}  // namespace headrace::side
