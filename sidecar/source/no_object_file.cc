// Where the parts that need a GPU are built alone (object_file.cc is the counterpart): remote/no_object_store.cc finds
// no objects that could be opened.
#include "sidecar/source/storage.h"

namespace headrace::side {

Result<std::unique_ptr<StoredFile>> OpenObject(const FileTable& files, size_t file, std::atomic<uint64_t>*) {
  return Unavailable(files.path(file) + ": this build reads no object stores");
}

}  // namespace headrace::side
