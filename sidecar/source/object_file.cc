// Objects of s3://, gs:// and http(s)://.
#include <algorithm>
#include <vector>

#include "sidecar/remote/object_store.h"
#include "sidecar/source/storage.h"
#include "sidecar/source/storage_wait.h"

namespace headrace::side {
namespace {

// A larger read is made of several, at the same time.
constexpr size_t kPartBytes = 8 << 20;

class PendingObjectRead : public PendingRead {
 public:
  PendingObjectRead(Object* object, uint64_t offset, std::span<uint8_t> out) : read_(object, offset, out) {}
  Status Finish() override {
    const StorageWait wait;
    return read_.Finish();
  }

 private:
  ObjectRead read_;
};

class ObjectFile : public RemoteFile {
 public:
  ObjectFile(std::shared_ptr<ObjectStore> store, const FoundObject& found, std::atomic<uint64_t>* bytes_read)
      : store_(std::move(store)), object_(store_->Open(found, bytes_read)) {}

  Result<size_t> ReadAt(uint64_t offset, std::span<uint8_t> out) override {
    if (offset >= size()) return size_t{0};
    out = out.first(static_cast<size_t>(std::min<uint64_t>(out.size(), size() - offset)));
    std::vector<std::unique_ptr<PendingRead>> parts;
    for (size_t at = 0; at < out.size(); at += kPartBytes) {
      parts.push_back(Begin(offset + at, out.subspan(at, std::min(kPartBytes, out.size() - at))));
    }
    for (const auto& part : parts) RETURN_IF_ERROR(part->Finish());
    return out.size();
  }
  std::unique_ptr<PendingRead> Begin(uint64_t offset, std::span<uint8_t> out) override {
    return std::make_unique<PendingObjectRead>(object_.get(), offset, out);
  }
  uint64_t size() const override { return object_->size(); }
  const std::string& path() const override { return object_->path(); }

 private:
  const std::shared_ptr<ObjectStore> store_;
  const std::unique_ptr<Object> object_;
};

}  // namespace

Result<std::unique_ptr<StoredFile>> OpenObject(const FileTable& files, size_t file, std::atomic<uint64_t>* bytes_read) {
  const FileTable::Remote& remote = *files.remote(file);
  const FoundObject found{files.path(file) + remote.query, remote.size, remote.version};
  return std::unique_ptr<StoredFile>(std::make_unique<ObjectFile>(files.store(), found, bytes_read));
}

}  // namespace headrace::side
