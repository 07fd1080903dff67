// Files of a mounted volume.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
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
  Result<bool> ReadNow(uint64_t offset, std::span<uint8_t> out) override {
    if (may_wait_.load(std::memory_order_relaxed)) {
      const iovec part{out.data(), out.size()};
      const ssize_t read = preadv2(fd_, &part, 1, static_cast<off_t>(offset), RWF_NOWAIT);
      if (read == static_cast<ssize_t>(out.size())) {
        bytes_read_.fetch_add(out.size(), std::memory_order_relaxed);
        return true;
      }
      // Some file systems cannot say: then it is read as if it were there, as before.
      if (read < 0 && errno == EOPNOTSUPP) may_wait_.store(false, std::memory_order_relaxed);
    }
    if (!may_wait_.load(std::memory_order_relaxed)) {
      ASSIGN_OR_RETURN(const size_t read, ReadAt(offset, out));
      return read == out.size();
    }
    Advise(offset, out.size());
    return false;
  }
  void Advise(uint64_t offset, uint64_t bytes) override {
    posix_fadvise(fd_, static_cast<off_t>(offset), static_cast<off_t>(bytes), POSIX_FADV_WILLNEED);
  }
  uint64_t size() const override { return size_; }
  const std::string& path() const override { return path_; }

 private:
  const std::string path_;
  const int fd_;
  const uint64_t size_;
  std::atomic<uint64_t>& bytes_read_;
  std::atomic<bool> may_wait_{true};  // whether the kernel says that a read would wait
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
