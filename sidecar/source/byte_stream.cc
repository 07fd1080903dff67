#include "sidecar/source/byte_stream.h"

#include <algorithm>

#include "sidecar/source/compression.h"
#include "sidecar/source/object_cache.h"
#include "sidecar/source/raw_stream.h"

namespace headrace::side {
namespace {

class PlainStream : public RawStream {
 public:
  explicit PlainStream(std::unique_ptr<StoredFile> file) : file_(std::move(file)) {}

  Result<size_t> Read(uint8_t* out, size_t n) override {
    if (offset_ + n + kAdvisedBytes / 2 > advised_ && advised_ < file_->size()) {
      const uint64_t from = std::max(advised_, offset_);
      file_->Advise(from, kAdvisedBytes);
      advised_ = from + kAdvisedBytes;
    }
    ASSIGN_OR_RETURN(const size_t read, file_->ReadAt(offset_, {out, n}));
    offset_ += read;
    return read;
  }
  Status PassOver(uint64_t n) override {
    offset_ += n;
    return {};
  }
  void Rewind() override { offset_ = 0; }
  std::optional<uint64_t> size() const override { return file_->size(); }
  const std::string& path() const override { return file_->path(); }

 private:
  // The kernel by itself reads 128 KiB ahead, which leaves volumes on a network waiting most of the time.
  static constexpr uint64_t kAdvisedBytes = 4 << 20;

  const std::unique_ptr<StoredFile> file_;
  uint64_t offset_ = 0;
  uint64_t advised_ = 0;  // up to there the kernel has been told to read
};

// A remote file, whose first bytes are waited for when they are needed and not when it is opened: so the next ones can
// be opened, and are on their way, while one is read.
class LateStream : public ByteStream {
 public:
  LateStream(std::unique_ptr<RawStream> file, Compression compression)
      : file_(std::move(file)), compression_(compression) {}

  Result<size_t> Read(uint8_t* out, size_t n) override {
    RETURN_IF_ERROR(Open());
    return stream_->Read(out, n);
  }
  Status PassOver(uint64_t n) override {
    RETURN_IF_ERROR(Open());
    return stream_->PassOver(n);
  }
  std::optional<uint64_t> size() const override { return stream_ == nullptr ? std::nullopt : stream_->size(); }
  bool plain() const override { return stream_ != nullptr && stream_->plain(); }

 private:
  Status Open() {
    if (file_ == nullptr) return status_;
    auto stream = Decompress(std::move(file_), compression_);
    status_ = stream.status();
    if (stream.ok()) stream_ = std::move(*stream);
    return status_;
  }

  std::unique_ptr<RawStream> file_;  // until the first read
  const Compression compression_;
  Status status_;
  std::unique_ptr<ByteStream> stream_;
};

}  // namespace

std::unique_ptr<RawStream> MakePlainStream(std::unique_ptr<StoredFile> file) {
  return std::make_unique<PlainStream>(std::move(file));
}

Result<std::unique_ptr<ByteStream>> OpenByteStream(const FileTable& files, size_t file, Compression compression,
                                                   std::atomic<uint64_t>* bytes_read) {
  ASSIGN_OR_RETURN(auto stored, OpenStored(files, file, bytes_read));
  if (stored->remote() == nullptr) return Decompress(MakePlainStream(std::move(stored)), compression);
  const std::shared_ptr<ObjectCache>& cache = files.cache();
  std::unique_ptr<ObjectCache::Writer> keeper;
  if (cache != nullptr) {
    const FileTable::Remote& remote = *files.remote(file);
    const ObjectKey key{files.path(file), remote.size, remote.version};
    if (auto kept = cache->Find(key, bytes_read)) return Decompress(MakePlainStream(std::move(kept)), compression);
    keeper = cache->Begin(key);
  }
  auto ahead = MakeReadAhead(std::move(stored), std::move(keeper));
  if (compression == Compression::kNone) return std::unique_ptr<ByteStream>(std::move(ahead));
  return std::unique_ptr<ByteStream>(std::make_unique<LateStream>(std::move(ahead), compression));
}

}  // namespace headrace::side
