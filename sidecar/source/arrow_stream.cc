#include "sidecar/source/arrow_stream.h"

#include <arrow/buffer.h>
#include <arrow/status.h>

#include <algorithm>
#include <cstring>

#include "sidecar/source/arrow_columns.h"
#include "sidecar/source/arrow_file.h"

namespace headrace::side {
namespace {

constexpr char kFileMagic[] = {'A', 'R', 'R', 'O', 'W', '1', 0, 0};

// Reads n bytes, or what there is.
arrow::Result<int64_t> ReadFully(ByteStream& bytes, int64_t n, uint8_t* out) {
  int64_t done = 0;
  while (done < n) {
    const Result<size_t> read = bytes.Read(out + done, static_cast<size_t>(n - done));
    if (!read.ok()) return ToArrow(read.status());
    if (*read == 0) break;
    done += static_cast<int64_t>(*read);
  }
  return done;
}

// The same into new memory, which grows as the bytes come: how many there are is not believed before.
template <typename ReadSome>
arrow::Result<std::shared_ptr<arrow::Buffer>> ReadGrowing(int64_t n, ReadSome read_some) {
  constexpr int64_t kFirstBytes = 16 << 20;
  if (n < 0) return arrow::Status::Invalid("a read of ", n, " bytes");
  int64_t done = 0;
  ARROW_ASSIGN_OR_RAISE(auto buffer, arrow::AllocateResizableBuffer(std::min(n, kFirstBytes), ArrowMemory()));
  while (true) {
    ARROW_ASSIGN_OR_RAISE(const int64_t read, read_some(buffer->size() - done, buffer->mutable_data() + done));
    const bool full = read == buffer->size() - done;
    done += read;
    if (!full || done == n) break;
    RETURN_NOT_OK(buffer->Resize(std::min(n, 4 * done)));
  }
  RETURN_NOT_OK(buffer->Resize(done));
  return buffer;
}

class ArrowStream : public arrow::io::InputStream {
 public:
  explicit ArrowStream(std::unique_ptr<ByteStream> bytes) : bytes_(std::move(bytes)) {}

  arrow::Status Close() override {
    closed_ = true;
    return arrow::Status::OK();
  }
  bool closed() const override { return closed_; }
  arrow::Result<int64_t> Tell() const override { return position_; }
  arrow::Result<int64_t> Read(int64_t n, void* out) override {
    if (n < 0) return arrow::Status::Invalid("a read of ", n, " bytes");
    RETURN_NOT_OK(Begin());
    auto* const to = static_cast<uint8_t*>(out);
    const int64_t kept = std::min(n, kept_end_ - kept_at_);
    std::memcpy(to, kept_ + kept_at_, static_cast<size_t>(kept));
    kept_at_ += kept;
    ARROW_ASSIGN_OR_RAISE(const int64_t read, ReadFully(*bytes_, n - kept, to + kept));
    position_ += kept + read;
    return kept + read;
  }
  arrow::Result<std::shared_ptr<arrow::Buffer>> Read(int64_t n) override {
    return ReadGrowing(n, [&](int64_t some, uint8_t* out) { return Read(some, out); });
  }

 private:
  arrow::Status Begin() {
    if (begun_) return arrow::Status::OK();
    begun_ = true;
    ARROW_ASSIGN_OR_RAISE(kept_end_, ReadFully(*bytes_, sizeof kept_, kept_));
    if (kept_end_ == sizeof kept_ && std::memcmp(kept_, kFileMagic, sizeof kept_) == 0) kept_at_ = kept_end_;
    return arrow::Status::OK();
  }

  const std::unique_ptr<ByteStream> bytes_;
  uint8_t kept_[sizeof kFileMagic] = {};  // the first bytes
  int64_t kept_at_ = 0;                   // the next of them to be given out ...
  int64_t kept_end_ = 0;                  // ... and how many there are
  int64_t position_ = 0;
  bool begun_ = false;
  bool closed_ = false;
};

class AheadFile : public OrderedFile {
 public:
  AheadFile(std::unique_ptr<StoredFile> file, std::unique_ptr<ByteStream> ahead)
      : size_(static_cast<int64_t>(file->size())), file_(MakeArrowFile(std::move(file))), ahead_(std::move(ahead)) {}

  void ReadAhead() override { in_order_ = true; }

  arrow::Status Close() override { return file_->Close(); }
  bool closed() const override { return file_->closed(); }
  arrow::Result<int64_t> GetSize() override { return size_; }
  arrow::Result<int64_t> Tell() const override { return file_->Tell(); }
  arrow::Status Seek(int64_t position) override { return file_->Seek(position); }
  arrow::Result<int64_t> Read(int64_t n, void* out) override { return file_->Read(n, out); }
  arrow::Result<std::shared_ptr<arrow::Buffer>> Read(int64_t n) override { return file_->Read(n); }
  arrow::Result<int64_t> ReadAt(int64_t position, int64_t n, void* out) override {
    if (!in_order_ || position < at_ || position > size_ || n < 0) return file_->ReadAt(position, n, out);
    if (position > at_) {
      const Status passed = ahead_->PassOver(static_cast<uint64_t>(position - at_));
      if (!passed.ok()) return ToArrow(passed);
      at_ = position;
    }
    ARROW_ASSIGN_OR_RAISE(const int64_t read, ReadFully(*ahead_, n, static_cast<uint8_t*>(out)));
    at_ += read;
    return read;
  }
  arrow::Result<std::shared_ptr<arrow::Buffer>> ReadAt(int64_t position, int64_t n) override {
    return ReadGrowing(n, [&](int64_t some, uint8_t* out) {
      const int64_t from = position;
      position += some;
      return ReadAt(from, some, out);
    });
  }

 private:
  const int64_t size_;
  const std::shared_ptr<ArrowFile> file_;
  const std::unique_ptr<ByteStream> ahead_;
  int64_t at_ = 0;  // of ahead_
  bool in_order_ = false;
};

}  // namespace

std::shared_ptr<arrow::io::InputStream> MakeArrowStream(std::unique_ptr<ByteStream> bytes) {
  return std::make_shared<ArrowStream>(std::move(bytes));
}

std::shared_ptr<OrderedFile> MakeOrderedFile(std::unique_ptr<StoredFile> file, std::unique_ptr<ByteStream> ahead) {
  return std::make_shared<AheadFile>(std::move(file), std::move(ahead));
}

}  // namespace headrace::side
