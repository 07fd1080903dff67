#include "sidecar/source/storage.h"

namespace headrace::side {

Result<std::unique_ptr<StoredFile>> OpenStored(const FileTable& files, size_t file, std::atomic<uint64_t>* bytes_read) {
  return files.remote(file) != nullptr ? OpenObject(files, file, bytes_read) : OpenLocal(files.path(file), bytes_read);
}

}  // namespace headrace::side
