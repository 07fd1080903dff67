// Files of a mounted volume.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "sidecar/source/storage.h"
#include "sidecar/source/storage_wait.h"

namespace headrace::side {
namespace {

class LocalFile : public StoredFile {
 public:
  LocalFile(std::string path, int fd, uint64_t size, std::atomic<uint64_t>* bytes_read)
      : path_(std::move(path)), fd_(fd), size_(size), bytes_read_(*bytes_read) {}
  ~LocalFile() override { close(fd_); }
  LocalFile(const LocalFile&) = delete;
  LocalFile& operator=(const LocalFile&) = delete;

  // pread and not mmap: a volume that fails is then an error here, not a SIGBUS.
  Result<size_t> ReadAt(uint64_t offset, std::span<uint8_t> out) override {
    const StorageWait wait;
    size_t done = 0;
    while (done < out.size()) {
      const ssize_t read = pread(fd_, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
      if (read == 0) break;
      if (read > 0) {
        done += static_cast<size_t>(read);
      } else if (errno != EINTR) {
        return ErrnoStatus(errno, path_ + ": reading at byte " + std::to_string(offset + done));
      }
    }
    bytes_read_.fetch_add(done, std::memory_order_relaxed);
    return done;
  }
  uint64_t size() const override { return size_; }
  const std::string& path() const override { return path_; }

 private:
  const std::string path_;
  const int fd_;
  const uint64_t size_;
  std::atomic<uint64_t>& bytes_read_;
};

}  // namespace

Result<std::unique_ptr<StoredFile>> OpenLocal(const std::string& path, std::atomic<uint64_t>* bytes_read) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, path + ": cannot be opened");
  struct stat info {};
  fstat(fd, &info);
  return std::unique_ptr<StoredFile>(
      std::make_unique<LocalFile>(path, fd, static_cast<uint64_t>(info.st_size), bytes_read));
}

}  // namespace headrace::side
