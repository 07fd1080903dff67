// Where the parts that need a GPU are built alone (object_store.cc is the counterpart): finds nothing, and says why.
#include "sidecar/remote/object_store.h"

namespace headrace::side {

class Transfers::Loop {};
Transfers::Transfers(const RetryPolicy&) {}
Transfers::~Transfers() = default;

ObjectStore::ObjectStore(const ObjectStoreOptions& options, Environment environment, const RetryPolicy& policy)
    : context_{options, std::move(environment), Transfers(policy)} {}

std::vector<Result<std::vector<FoundObject>>> ObjectStore::Find(const std::vector<std::string>& paths) {
  std::vector<Result<std::vector<FoundObject>>> found;
  for (const std::string& path : paths) {
    found.emplace_back(Unavailable("this build reads no object stores, such as " + path +
                                   ": it is of the parts that need a GPU alone; name files of a volume"));
  }
  return found;
}
void ObjectStore::Stop() {}

}  // namespace headrace::side
