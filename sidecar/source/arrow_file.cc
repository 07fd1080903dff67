#include "sidecar/source/arrow_file.h"

#include <arrow/buffer.h>
#include <arrow/status.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <vector>

#include "sidecar/source/arrow_columns.h"

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

constexpr int64_t kPartBytes = 8 << 20;

struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  std::shared_ptr<arrow::Buffer> memory;
  std::vector<std::unique_ptr<PendingRead>> parts;  // gone before the memory; null: that part is there
};

class FetchingFile;

class Fetched : public FetchedRanges {
 public:
  explicit Fetched(FetchingFile* file) : file_(*file) {}
  ~Fetched() override;
  std::vector<Range> ranges;

 private:
  FetchingFile& file_;
};

class FetchingFile : public ArrowFile {
 public:
  explicit FetchingFile(std::unique_ptr<StoredFile> file) : file_(std::move(file)) {}

  std::unique_ptr<FetchedRanges> Fetch(const std::vector<arrow::io::ReadRange>& ranges) override {
    auto fetched = std::make_unique<Fetched>(this);
    if (!fetches()) return fetched;
    for (const arrow::io::ReadRange& range : ranges) {
      fetched->ranges.push_back({range.offset, range.offset + range.length, {}, {}});
      Begin(&fetched->ranges.back());
    }
    fetched_.push_back(fetched.get());
    return fetched;
  }
  bool fetches() const override { return file_->remote() != nullptr; }
  void Forget(const Fetched* fetched) {
    fetched_.erase(std::remove(fetched_.begin(), fetched_.end(), fetched), fetched_.end());
  }

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
    RETURN_NOT_OK(Check(position, n));
    if (Range* const range = Find(position, n)) {
      RETURN_NOT_OK(Await(range, position, position + n));
      std::memcpy(out, range->memory->data() + (position - range->begin), static_cast<size_t>(n));
      return n;
    }
    const auto read =
        file_->ReadAt(static_cast<uint64_t>(position), {static_cast<uint8_t*>(out), static_cast<size_t>(n)});
    if (!read.ok()) return ToArrow(read.status());
    return static_cast<int64_t>(*read);
  }
  arrow::Result<std::shared_ptr<arrow::Buffer>> ReadAt(int64_t position, int64_t n) override {
    // A damaged footer may ask for more than there is; memory is laid out for what can be read.
    const int64_t size = static_cast<int64_t>(file_->size());
    RETURN_NOT_OK(Check(position, n));
    const int64_t wanted = std::min(n, std::max<int64_t>(size - position, 0));
    if (Range* const range = Find(position, wanted)) {
      RETURN_NOT_OK(Await(range, position, position + wanted));
      return arrow::SliceBuffer(range->memory, position - range->begin, wanted);
    }
    ARROW_ASSIGN_OR_RAISE(auto buffer, arrow::AllocateResizableBuffer(wanted, ArrowMemory()));
    ARROW_ASSIGN_OR_RAISE(const int64_t read, ReadAt(position, wanted, buffer->mutable_data()));
    RETURN_NOT_OK(buffer->Resize(read));
    return buffer;
  }

 private:
  static arrow::Status Check(int64_t position, int64_t n) {
    if (position >= 0 && n >= 0) return arrow::Status::OK();
    return arrow::Status::Invalid("a read of ", n, " bytes at byte ", position);
  }

  // A range for which there is no memory is read when it is needed, if it can be.
  void Begin(Range* range) {
    auto memory = arrow::AllocateBuffer(range->end - range->begin, ArrowMemory());
    if (!memory.ok()) return;
    range->memory = std::move(*memory);
    for (int64_t at = range->begin; at < range->end; at += kPartBytes) {
      uint8_t* const out = range->memory->mutable_data() + (at - range->begin);
      const auto size = static_cast<size_t>(std::min(kPartBytes, range->end - at));
      range->parts.push_back(file_->remote()->Begin(static_cast<uint64_t>(at), {out, size}));
    }
  }

  // That holds those bytes, if one does.
  Range* Find(int64_t position, int64_t n) {
    for (Fetched* const fetched : fetched_) {
      for (Range& range : fetched->ranges) {
        if (range.memory != nullptr && range.begin <= position && position + n <= range.end) return &range;
      }
    }
    return nullptr;
  }

  arrow::Status Await(Range* range, int64_t begin, int64_t end) {
    const std::lock_guard lock(mutex_);  // columns share ranges
    for (int64_t part = (begin - range->begin) / kPartBytes; range->begin + part * kPartBytes < end; ++part) {
      std::unique_ptr<PendingRead>& read = range->parts[static_cast<size_t>(part)];
      if (read == nullptr) continue;
      const Status finished = read->Finish();
      if (!finished.ok()) return ToArrow(finished);
      read.reset();
    }
    return arrow::Status::OK();
  }

  const std::unique_ptr<StoredFile> file_;
  std::vector<Fetched*> fetched_;
  std::mutex mutex_;      // guards the parts of their ranges
  int64_t position_ = 0;  // of Read
  bool closed_ = false;
};

Fetched::~Fetched() { file_.Forget(this); }

}  // namespace

std::shared_ptr<ArrowFile> MakeArrowFile(std::unique_ptr<StoredFile> file) {
  return std::make_shared<FetchingFile>(std::move(file));
}

arrow::Status ToArrow(Status status) {
  const std::string message = status.message();
  return {arrow::StatusCode::IOError, message, std::make_shared<OurStatus>(std::move(status))};
}

Status FromArrow(const arrow::Status& status, const std::string& where) {
  const auto& detail = status.detail();
  if (detail != nullptr && detail->type_id() == OurStatus::kTypeId) {
    return static_cast<const OurStatus&>(*detail).status();
  }
  if (status.IsOutOfMemory()) {
    return Exhausted(where + status.message() + "; write the file in smaller parts, if it is not damaged");
  }
  return Corrupt(where + status.message() +
                 "; the file is damaged, or of another format; write it again or take it out of "
                 "spec.source.files.paths");
}

}  // namespace headrace::side
