// A TFRecord file is a sequence of records (tensorflow/core/lib/io/record_writer.h):
//
//   uint64  length                   little-endian
//   uint32  masked CRC-32C of those 8 bytes
//   byte    data[length]
//   uint32  masked CRC-32C of data
//
// masked(crc) = rotate_right(crc, 15) + 0xa282ead8.
#include "sidecar/source/tfrecord.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "sidecar/source/crc32c.h"

namespace headrace::side {
namespace {

constexpr size_t kHeaderBytes = 12;
constexpr size_t kFooterBytes = 4;
constexpr uint64_t kMaxRecordBytes = uint64_t{1} << 30;

uint32_t Mask(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8; }

template <typename T>
T Load(const uint8_t* bytes) {
  static_assert(std::endian::native == std::endian::little);
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

class TFRecordStream : public Stream<Record> {
 public:
  TFRecordStream(SourceContext& context, uint32_t file, std::unique_ptr<ByteStream> bytes)
      : context_(context), file_(file), bytes_(std::move(bytes)) {}

  Result<size_t> Read(std::span<Record> out) override {
    size_t read = 0;
    while (read < out.size()) {
      // What lies in the chunk already is handed out first, so that a block costs one read of the file at most.
      if (read > 0 && end_ - begin_ < kHeaderBytes) break;
      ASSIGN_OR_RETURN(const std::optional<uint64_t> length_here, Length());
      if (!length_here) break;
      const uint64_t length = *length_here;
      const size_t whole = kHeaderBytes + static_cast<size_t>(length) + kFooterBytes;
      if (read > 0 && end_ - begin_ < whole) break;
      ASSIGN_OR_RETURN(const bool complete, Need(whole));
      if (!complete) return Truncated(whole);
      const uint8_t* const data = chunk_->data() + begin_ + kHeaderBytes;
      if (Load<uint32_t>(data + length) != Mask(Crc32c(data, length))) {
        return Damaged("the checksum of the record's " + std::to_string(length) + " bytes does not match");
      }
      Record& record = out[read++];
      record.chunk = chunk_;
      record.data = data;
      record.size = static_cast<uint32_t>(length);
      record.file = file_;
      record.offset = offset_;
      begin_ += whole;
      offset_ += whole;
    }
    return read;
  }

  // From length to length: the records themselves are neither read, where they are large, nor checked.
  Result<uint64_t> PassOver(uint64_t n) override {
    uint64_t passed = 0;
    while (passed < n) {
      ASSIGN_OR_RETURN(const std::optional<uint64_t> length, Length());
      if (!length) break;
      const size_t whole = kHeaderBytes + static_cast<size_t>(*length) + kFooterBytes;
      const size_t here = std::min(whole, end_ - begin_);
      begin_ += here;
      offset_ += whole;
      if (here < whole) {
        RETURN_IF_ERROR(bytes_->PassOver(whole - here));
        begin_ = end_ = 0;
      }
      ++passed;
    }
    return passed;
  }

 private:
  // The length of the next record, all of which is in the file where the file's size is known; nothing at the end.
  Result<std::optional<uint64_t>> Length() {
    ASSIGN_OR_RETURN(const bool header, Need(kHeaderBytes));
    if (!header) {
      if (end_ == begin_) return std::optional<uint64_t>();
      return Truncated(kHeaderBytes);
    }
    const uint8_t* const at = chunk_->data() + begin_;
    const auto length = Load<uint64_t>(at);
    if (Load<uint32_t>(at + 8) != Mask(Crc32c(at, 8))) {
      return Damaged("the checksum of the record's length does not match");
    }
    if (length > kMaxRecordBytes) {
      return Damaged("a record of " + std::to_string(length) + " bytes is larger than 1 GiB");
    }
    const size_t whole = kHeaderBytes + static_cast<size_t>(length) + kFooterBytes;
    if (bytes_->size() && *bytes_->size() - offset_ < whole) return Truncated(whole);
    return std::optional<uint64_t>(length);
  }

  // Makes [begin_, begin_ + bytes) of the chunk valid. false: the file ends before.
  Result<bool> Need(size_t bytes) {
    if (end_ - begin_ >= bytes) return true;
    if (!chunk_ || chunk_->capacity() - begin_ < bytes) {
      // Records in the old chunk keep it; the bytes of the one that was cut move on.
      ChunkRef next = context_.chunks.Get(bytes);
      if (chunk_) std::memcpy(next->data(), chunk_->data() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
      chunk_ = std::move(next);
    }
    while (end_ - begin_ < bytes) {
      ASSIGN_OR_RETURN(const size_t read, bytes_->Read(chunk_->data() + end_, chunk_->capacity() - end_));
      if (read == 0) return false;
      end_ += read;
    }
    return true;
  }

  std::string Where() const { return context_.files.paths[file_] + ": at byte " + std::to_string(offset_) + ": "; }
  Status Truncated(size_t whole) const {
    return Corrupt(Where() + "the file ends " + std::to_string(whole - std::min(whole, Available())) +
                   " bytes before the record does: it was truncated; write it again or take it out of "
                   "spec.source.files.paths");
  }
  size_t Available() const { return bytes_->size() ? static_cast<size_t>(*bytes_->size() - offset_) : end_ - begin_; }
  Status Damaged(const std::string& what) const {
    return Corrupt(Where() + what +
                   ": the file is damaged, or not a TFRecord file; write it again or take it out of "
                   "spec.source.files.paths");
  }

  SourceContext& context_;
  const uint32_t file_;
  std::unique_ptr<ByteStream> bytes_;
  ChunkRef chunk_;
  size_t begin_ = 0;     // of the next record, in the chunk
  size_t end_ = 0;       // of what was read, in the chunk
  uint64_t offset_ = 0;  // of the next record, in the file
};

}  // namespace

Result<std::unique_ptr<Stream<Record>>> OpenTFRecord(SourceContext& context, uint32_t file) {
  ASSIGN_OR_RETURN(auto bytes, OpenByteStream(context.files, file, context.compression, &context.bytes_read));
  return std::unique_ptr<Stream<Record>>(std::make_unique<TFRecordStream>(context, file, std::move(bytes)));
}

}  // namespace headrace::side
