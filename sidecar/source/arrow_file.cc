#include "sidecar/source/arrow_file.h"

#include <arrow/buffer.h>
#include <arrow/status.h>

#include <algorithm>

namespace headrace::side {
namespace {

// Carries our status through Arrow's readers.
class OurStatus : public arrow::StatusDetail {
 public:
  explicit OurStatus(Status status) : status_(std::move(status)) {}
  const char* type_id() const override { return kTypeId; }
  std::string ToString() const override { return status_.ToString(); }
  const Status& status() const { return status_; }

  static constexpr char kTypeId[] = "headrace::Status";

 private:
  const Status status_;
};

arrow::Status ToArrow(Status status) {
  const std::string message = status.message();
  return {arrow::StatusCode::IOError, message, std::make_shared<OurStatus>(std::move(status))};
}

class ArrowFile : public arrow::io::RandomAccessFile {
 public:
  explicit ArrowFile(std::unique_ptr<StoredFile> file) : file_(std::move(file)) {}

  arrow::Status Close() override {
    closed_ = true;
    return arrow::Status::OK();
  }
  bool closed() const override { return closed_; }
  arrow::Result<int64_t> GetSize() override { return static_cast<int64_t>(file_->size()); }
  arrow::Result<int64_t> Tell() const override { return position_; }
  arrow::Status Seek(int64_t position) override {
    position_ = position;
    return arrow::Status::OK();
  }
  arrow::Result<int64_t> Read(int64_t n, void* out) override {
    ARROW_ASSIGN_OR_RAISE(const int64_t read, ReadAt(position_, n, out));
    position_ += read;
    return read;
  }
  arrow::Result<std::shared_ptr<arrow::Buffer>> Read(int64_t n) override {
    ARROW_ASSIGN_OR_RAISE(auto buffer, ReadAt(position_, n));
    position_ += buffer->size();
    return buffer;
  }
  arrow::Result<int64_t> ReadAt(int64_t position, int64_t n, void* out) override {
    const auto read =
        file_->ReadAt(static_cast<uint64_t>(position), {static_cast<uint8_t*>(out), static_cast<size_t>(n)});
    if (!read.ok()) return ToArrow(read.status());
    return static_cast<int64_t>(*read);
  }
  arrow::Result<std::shared_ptr<arrow::Buffer>> ReadAt(int64_t position, int64_t n) override {
    // A damaged footer may ask for more than there is; memory is laid out for what can be read.
    const int64_t size = static_cast<int64_t>(file_->size());
    if (position < 0 || n < 0) return arrow::Status::Invalid("a read of ", n, " bytes at byte ", position);
    const int64_t wanted = std::min(n, std::max<int64_t>(size - position, 0));
    ARROW_ASSIGN_OR_RAISE(auto buffer, arrow::AllocateResizableBuffer(wanted));
    ARROW_ASSIGN_OR_RAISE(const int64_t read, ReadAt(position, wanted, buffer->mutable_data()));
    RETURN_NOT_OK(buffer->Resize(read));
    return buffer;
  }

 private:
  const std::unique_ptr<StoredFile> file_;
  int64_t position_ = 0;  // of Read, which one thread at a time may call
  bool closed_ = false;
};

}  // namespace

std::shared_ptr<arrow::io::RandomAccessFile> MakeArrowFile(std::unique_ptr<StoredFile> file) {
  return std::make_shared<ArrowFile>(std::move(file));
}

Status FromArrow(const arrow::Status& status) {
  const auto& detail = status.detail();
  if (detail != nullptr && detail->type_id() == OurStatus::kTypeId) {
    return static_cast<const OurStatus&>(*detail).status();
  }
  return status.IsOutOfMemory() ? Exhausted(status.message()) : Corrupt(status.message());
}

}  // namespace headrace::side
