// A file an object: its bytes, then its key, so that a name that two objects share is no harm. Drafts begin with a dot
// and are locked by those who write them.
#include "sidecar/source/object_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "common/base/log.h"
#include "sidecar/core/random.h"

namespace headrace::side {
namespace {

namespace fs = std::filesystem;

std::string TextOf(const ObjectKey& key) {
  return key.path + "\n" + std::to_string(key.size) + "\n" + key.version + "\n";
}

std::string NameOf(const ObjectKey& key) {
  std::string name;
  for (const uint64_t seed : {0x6f626a65, 0x63747321}) {
    uint64_t hash = seed;
    for (const char c : TextOf(key)) hash = Mix(hash, static_cast<unsigned char>(c));
    std::array<char, 17> hex;
    std::snprintf(hex.data(), hex.size(), "%016llx", static_cast<unsigned long long>(hash));
    name += hex.data();
  }
  return name;
}

// An object's part of the file that keeps it.
class KeptObject : public StoredFile {
 public:
  KeptObject(std::unique_ptr<StoredFile> file, const ObjectKey& key)
      : file_(std::move(file)), path_(key.path), size_(key.size) {}
  Result<size_t> ReadAt(uint64_t offset, std::span<uint8_t> out) override {
    return offset >= size_ ? Result<size_t>(size_t{0}) : file_->ReadAt(offset, Within(offset, out));
  }
  void Advise(uint64_t offset, uint64_t bytes) override { file_->Advise(offset, bytes); }
  uint64_t size() const override { return size_; }
  const std::string& path() const override { return path_; }

 private:
  std::span<uint8_t> Within(uint64_t offset, std::span<uint8_t> out) const {
    return out.first(static_cast<size_t>(std::min<uint64_t>(out.size(), size_ - offset)));
  }

  const std::unique_ptr<StoredFile> file_;
  const std::string path_;
  const uint64_t size_;
};

bool WriteAll(int fd, const uint8_t* bytes, size_t size) {
  while (size > 0) {
    const ssize_t written = write(fd, bytes, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes += written;
    size -= static_cast<size_t>(written);
  }
  return true;
}

}  // namespace

Result<std::unique_ptr<ObjectCache>> ObjectCache::Open(const std::string& folder, uint64_t most_bytes) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error || access(folder.c_str(), R_OK | W_OK | X_OK) != 0) {
    return Unavailable(
        folder + ": objects cannot be kept there: " + (error ? error.message() : ErrnoStatus(errno, "").message()));
  }
  return std::unique_ptr<ObjectCache>(new ObjectCache(folder, most_bytes));
}

std::string ObjectCache::PathOf(const ObjectKey& key) const { return folder_ + "/" + NameOf(key); }

std::unique_ptr<StoredFile> ObjectCache::Find(const ObjectKey& key, std::atomic<uint64_t>* bytes_read) {
  const std::string path = PathOf(key);
  if (access(path.c_str(), R_OK) != 0) return nullptr;
  auto file = OpenLocal(path, bytes_read);
  const std::string text = TextOf(key);
  if (!file.ok() || (*file)->size() != key.size + text.size()) return nullptr;
  std::string kept(text.size(), '\0');
  const auto read = (*file)->ReadAt(key.size, {reinterpret_cast<uint8_t*>(kept.data()), kept.size()});
  if (!read.ok() || kept != text) return nullptr;
  utimensat(AT_FDCWD, path.c_str(), nullptr, 0);  // it was used now
  return std::make_unique<KeptObject>(std::move(*file), key);
}

std::unique_ptr<ObjectCache::Writer> ObjectCache::Begin(const ObjectKey& key) {
  const std::lock_guard lock(mutex_);
  const uint64_t bytes = key.size + TextOf(key).size();
  if (!MakeRoom(bytes)) return nullptr;
  std::string draft = folder_ + "/." + NameOf(key);
  const int fd = open(draft.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return nullptr;
  // Somebody who makes room may have removed it before it was locked. As large as it will be, it counts as that.
  struct stat opened {};
  struct stat named {};
  const bool ours = flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &opened) == 0 && stat(draft.c_str(), &named) == 0 &&
                    opened.st_ino == named.st_ino;
  if (!ours || ftruncate(fd, 0) != 0 || ftruncate(fd, static_cast<off_t>(bytes)) != 0) {
    close(fd);
    return nullptr;
  }
  return std::unique_ptr<Writer>(new Writer(this, key, fd, std::move(draft)));
}

bool ObjectCache::MakeRoom(uint64_t bytes) {
  if (bytes > most_bytes_) return false;
  struct Kept {
    fs::file_time_type used;
    uint64_t bytes;
    fs::path path;
  };
  std::vector<Kept> kept;
  uint64_t all = 0;
  std::error_code error;
  for (auto entry = fs::directory_iterator(folder_, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    std::error_code gone;
    const uint64_t size = entry->file_size(gone);
    const auto used = entry->last_write_time(gone);
    if (gone) continue;
    all += size;
    if (entry->path().filename().string()[0] != '.') {
      kept.push_back({used, size, entry->path()});
      continue;
    }
    const int fd = open(entry->path().c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) continue;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
      unlink(entry->path().c_str());
      all -= size;
    }
    close(fd);
  }
  std::sort(kept.begin(), kept.end(), [](const Kept& a, const Kept& b) { return a.used < b.used; });
  // Those who read one of them keep it open, and read on.
  for (const Kept& oldest : kept) {
    if (all + bytes <= most_bytes_) break;
    if (fs::remove(oldest.path, error)) all -= oldest.bytes;
  }
  return all + bytes <= most_bytes_;
}

ObjectCache::Writer::~Writer() {
  if (!done_) unlink(draft_.c_str());
  close(fd_);
}

bool ObjectCache::Writer::Append(std::span<const uint8_t> bytes) {
  if (!WriteAll(fd_, bytes.data(), bytes.size())) {
    log::Warning("an object cannot be kept in the cache",
                 {{"object", key_.path}, {"reason", ErrnoStatus(errno, draft_).message()}});
    return false;
  }
  written_ += bytes.size();
  return true;
}

void ObjectCache::Writer::Commit() {
  const std::string text = TextOf(key_);
  if (!WriteAll(fd_, reinterpret_cast<const uint8_t*>(text.data()), text.size())) return;
  done_ = rename(draft_.c_str(), cache_.PathOf(key_).c_str()) == 0;
}

}  // namespace headrace::side
