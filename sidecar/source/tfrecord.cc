// A TFRecord file is a sequence of records (tensorflow/core/lib/io/record_writer.h):
//
//   uint64  length                   little-endian
//   uint32  masked CRC-32C of those 8 bytes
//   byte    data[length]
//   uint32  masked CRC-32C of data
//
// masked(crc) = rotate_right(crc, 15) + 0xa282ead8.
#include "sidecar/source/tfrecord.h"

#include <bit>
#include <cstring>

#include "sidecar/core/prefetch.h"
#include "sidecar/source/crc32c.h"

namespace headrace::side {
namespace {

constexpr size_t kHeaderBytes = 12;
constexpr size_t kFooterBytes = 4;
constexpr uint64_t kMaxRecordBytes = uint64_t{1} << 30;

template <typename T>
T Load(const uint8_t* bytes) {
  static_assert(std::endian::native == std::endian::little);
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

Status Damaged(const std::string& what) {
  return Corrupt(what +
                 ": the file is damaged, or not a TFRecord file; write it again or take it out of "
                 "spec.source.files.paths");
}

class TFRecordFramer : public Framer {
 public:
  Outcome Frame(BytesBlock* block, size_t size, bool last) override {
    block->origin.before = kHeaderBytes;
    block->origin.after = kFooterBytes;
    size_t at = 0;
    while (at < size) {
      const size_t here = size - at;
      if (here < kHeaderBytes) return Incomplete(at, here, kHeaderBytes, last);
      const uint8_t* const header = block->data() + at;
      const auto length = Load<uint64_t>(header);
      if (Load<uint32_t>(header + 8) != MaskedCrc32c(header, 8)) {
        return {at, Damaged("the checksum of the record's length does not match"), 0};
      }
      if (length > kMaxRecordBytes) {
        return {at, Damaged("a record of " + std::to_string(length) + " bytes is larger than 1 GiB"), 0};
      }
      const size_t whole = kHeaderBytes + static_cast<size_t>(length) + kFooterBytes;
      if (here < whole) return Incomplete(at, here, whole, last);
      block->Add(at + kHeaderBytes, static_cast<size_t>(length));
      at += whole;
      // Where a later header lies if records are of one length, as they mostly are: else each is waited for in turn.
      const size_t ahead = at + kPrefetchAhead * whole;
      if (ahead < size) __builtin_prefetch(block->data() + ahead);
    }
    return {at, {}, 0};
  }

 private:
  static Outcome Incomplete(size_t at, size_t here, size_t whole, bool last) {
    if (!last) return {at, {}, whole};
    return {at,
            Corrupt("the file ends " + std::to_string(whole - here) +
                    " bytes before the record does: it was truncated; write it again or take it out of "
                    "spec.source.files.paths"),
            0};
  }
};

// Checks the records' checksums before they are decoded: by the thread that decodes them, while it brings them into its
// cache. Records that are not decoded are not checked.
class ChecksumDecoder : public Decoder {
 public:
  explicit ChecksumDecoder(std::unique_ptr<Decoder> rest) : rest_(std::move(rest)) {}

  Status Decode(std::span<const Record> records, std::span<uint8_t* const> columns) override {
    for (size_t i = 0; i < records.size(); ++i) {
      // After a shuffle each record lies elsewhere.
      if (i + 2 * kPrefetchAhead < records.size()) {
        const Record& ahead = records[i + 2 * kPrefetchAhead];
        ahead.block->PrefetchPlace(ahead.value);
      }
      if (i + kPrefetchAhead < records.size()) {
        const Record& ahead = records[i + kPrefetchAhead];
        ahead.block->Prefetch(ahead.value);
      }
      const Record& record = records[i];
      const std::span<const uint8_t> data = record.bytes();
      if (Load<uint32_t>(data.data() + data.size()) == MaskedCrc32c(data.data(), data.size())) continue;
      return Damaged(record.Place() + ": the checksum of its " + std::to_string(data.size()) + " bytes does not match");
    }
    return rest_->Decode(records, columns);
  }

 private:
  const std::unique_ptr<Decoder> rest_;
};

}  // namespace

std::unique_ptr<Framer> MakeTFRecordFramer() { return std::make_unique<TFRecordFramer>(); }

std::unique_ptr<Decoder> CheckTFRecords(std::unique_ptr<Decoder> rest) {
  return std::make_unique<ChecksumDecoder>(std::move(rest));
}

}  // namespace headrace::side
