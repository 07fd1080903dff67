// Files of a mounted volume.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <optional>
#include <vector>

#include "sidecar/source/mapped_file.h"
#include "sidecar/source/storage.h"
#include "sidecar/source/storage_wait.h"

namespace headrace::side {
namespace {

// A copy that has to wait for storage after all waits page by page: not for more than this before it is noticed.
constexpr size_t kMostMappedBytes = 1 << 20;
constexpr uint32_t kResidentAtFirst = 1024;
constexpr uint32_t kResidentAgain = 64 << 10;

class LocalFile : public StoredFile {
 public:
  LocalFile(std::string path, int fd, const struct stat& opened, std::atomic<uint64_t>* bytes_read)
      : path_(std::move(path)),
        fd_(fd),
        opened_(opened),
        size_(static_cast<uint64_t>(opened.st_size)),
        bytes_read_(*bytes_read) {}
  ~LocalFile() override { close(fd_); }
  LocalFile(const LocalFile&) = delete;
  LocalFile& operator=(const LocalFile&) = delete;

  Result<size_t> ReadAt(uint64_t offset, std::span<uint8_t> out) override {
    const Result<size_t> read = Read(offset, out);
    if (read.ok()) CountReadNow(*read);
    return read;
  }
  Result<bool> ReadNow(uint64_t offset, std::span<uint8_t> out) override {
    const bool small = out.size() <= kMostMappedBytes && offset + out.size() <= size_;
    if (small && CopyMapped(offset, out)) return true;
    if (may_wait_.load(std::memory_order_relaxed)) {
      const iovec part{out.data(), out.size()};
      const ssize_t read = preadv2(fd_, &part, 1, static_cast<off_t>(offset), RWF_NOWAIT);
      if (read == static_cast<ssize_t>(out.size())) {
        if (small) NoteResident();
        return true;
      }
      // Some file systems cannot say: then it is read as if it were there, as before.
      if (read < 0 && errno == EOPNOTSUPP) may_wait_.store(false, std::memory_order_relaxed);
    }
    if (!may_wait_.load(std::memory_order_relaxed)) {
      ASSIGN_OR_RETURN(const size_t read, Read(offset, out));
      return read == out.size();
    }
    resident_.store(0, std::memory_order_relaxed);
    Advise(offset, out.size());
    return false;
  }
  const uint8_t* Look(uint64_t offset, size_t bytes, size_t padding) override {
    const MappedFile* const mapped = mapped_.load(std::memory_order_acquire);
    if (mapped == nullptr || bytes > kMostMappedBytes || offset + bytes > size_ ||
        offset + bytes + padding > mapped->readable_bytes()) {
      return nullptr;
    }
    if (mapped->whole() && !HasWaited(bytes)) return mapped->data() + offset;
    LeaveMapping();
    return nullptr;
  }
  void CountReadNow(uint64_t bytes) override { bytes_read_.fetch_add(bytes, std::memory_order_relaxed); }
  void Advise(uint64_t offset, uint64_t bytes) override {
    posix_fadvise(fd_, static_cast<off_t>(offset), static_cast<off_t>(bytes), POSIX_FADV_WILLNEED);
  }
  bool IsInMemory() override {
    constexpr uint64_t kLooks = 64;
    struct stat now {};
    if (stat(path_.c_str(), &now) != 0 || now.st_dev != opened_.st_dev || now.st_ino != opened_.st_ino ||
        now.st_size != opened_.st_size || now.st_mtim.tv_sec != opened_.st_mtim.tv_sec ||
        now.st_mtim.tv_nsec != opened_.st_mtim.tv_nsec) {
      return false;
    }
    for (uint64_t look = 0; look < kLooks && size_ > 0; ++look) {
      uint8_t byte = 0;
      const iovec part{&byte, 1};
      if (preadv2(fd_, &part, 1, static_cast<off_t>((size_ - 1) / kLooks * look), RWF_NOWAIT) != 1) return false;
    }
    return true;
  }
  uint64_t size() const override { return size_; }
  const std::string& path() const override { return path_; }

 private:
  Result<size_t> Read(uint64_t offset, std::span<uint8_t> out) {
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
    return done;
  }

  // Small parts of a file that was found in memory often enough are copied from there, until one has to be waited for.
  bool CopyMapped(uint64_t offset, std::span<uint8_t> out) {
    const MappedFile* const mapped = mapped_.load(std::memory_order_acquire);
    if (mapped == nullptr) return false;
    const bool copied = mapped->Copy(offset, out);
    if (copied && !HasWaited(out.size())) return true;
    LeaveMapping();
    return copied;
  }
  void LeaveMapping() {
    mapped_.store(nullptr, std::memory_order_relaxed);
    wanted_resident_.store(kResidentAgain, std::memory_order_relaxed);
    resident_.store(0, std::memory_order_relaxed);
  }
  void NoteResident() {
    if (resident_.fetch_add(1, std::memory_order_relaxed) != wanted_resident_.load(std::memory_order_relaxed)) return;
    const std::lock_guard lock(mapping_mutex_);
    if (mappings_.empty() || !mappings_.back()->whole()) {
      std::unique_ptr<MappedFile> mapping = MappedFile::Map(fd_, size_);
      if (mapping == nullptr) return;
      mappings_.push_back(std::move(mapping));
    }
    mapped_.store(mappings_.back().get(), std::memory_order_release);
  }
  // Whether this thread has waited for storage in mapped memory, as far as is known: it is asked now and then.
  static bool HasWaited(size_t read_bytes) {
    constexpr uint32_t kReadsATime = 64;
    constexpr size_t kBytesATime = 4 << 20;
    thread_local uint32_t reads = 0;
    thread_local size_t bytes = 0;
    thread_local std::optional<long> known;
    bytes += read_bytes;
    if (++reads < kReadsATime && bytes < kBytesATime) return false;
    reads = 0;
    bytes = 0;
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    const bool waited = known && usage.ru_majflt > *known;
    known = usage.ru_majflt;
    return waited;
  }

  const std::string path_;
  const int fd_;
  const struct stat opened_;
  const uint64_t size_;
  std::atomic<uint64_t>& bytes_read_;
  std::atomic<bool> may_wait_{true};                         // whether the kernel says that a read would wait
  std::atomic<uint32_t> resident_{0};                        // small reads in a row that did not have to wait ...
  std::atomic<uint32_t> wanted_resident_{kResidentAtFirst};  // ... and how many make it worth mapping the file
  std::mutex mapping_mutex_;
  std::vector<std::unique_ptr<MappedFile>> mappings_;  // kept once made: another thread may be reading
  std::atomic<const MappedFile*> mapped_{nullptr};     // the last one, while it is read from
};

}  // namespace

Result<std::unique_ptr<StoredFile>> OpenLocal(const std::string& path, std::atomic<uint64_t>* bytes_read) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, path + ": cannot be opened");
  struct stat info {};
  fstat(fd, &info);
  return std::unique_ptr<StoredFile>(std::make_unique<LocalFile>(path, fd, info, bytes_read));
}

}  // namespace headrace::side
