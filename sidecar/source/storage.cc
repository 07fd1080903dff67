#include "sidecar/source/storage.h"

#include "common/spec/remote_path.h"

namespace headrace::side {

Result<std::unique_ptr<StoredFile>> OpenStored(const FileTable& files, size_t file, std::atomic<uint64_t>* bytes_read) {
  return IsRemotePath(files.paths[file]) ? OpenObject(files, file, bytes_read)
                                         : OpenLocal(files.paths[file], bytes_read);
}

}  // namespace headrace::side
