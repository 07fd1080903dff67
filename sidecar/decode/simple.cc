// The decoders that look into no record: of range, tensors, enumerate's index, and of records as they are.
#include <cstring>
#include <utility>

#include "sidecar/decode/convert.h"
#include "sidecar/decode/decoder.h"

namespace headrace::side {
namespace {

class RangeDecoder : public Decoder {
 public:
  explicit RangeDecoder(DType dtype) : dtype_(dtype), size_(DTypeSize(dtype)) {}

  Status Decode(std::span<const Record> records, std::span<uint8_t* const> columns) override {
    uint8_t* out = columns[0];
    for (const Record& record : records) {
      StoreAs(dtype_, record.value, out);
      out += size_;
    }
    return {};
  }

 private:
  const DType dtype_;
  const size_t size_;
};

class TensorsDecoder : public Decoder {
 public:
  explicit TensorsDecoder(const TensorsSource& source) {
    for (const InlineTensor& tensor : source.tensors) {
      Rows& rows = tensors_.emplace_back();
      const size_t size = DTypeSize(tensor.dtype);
      rows.bytes.resize(tensor.values.size() * size);
      for (size_t i = 0; i < tensor.values.size(); ++i) StoreAs(tensor.dtype, tensor.values[i], &rows.bytes[i * size]);
      rows.row_bytes = rows.bytes.size() / static_cast<size_t>(tensor.shape[0]);
    }
  }

  Status Decode(std::span<const Record> records, std::span<uint8_t* const> columns) override {
    for (size_t c = 0; c < tensors_.size(); ++c) {
      uint8_t* out = columns[c];
      const Rows& rows = tensors_[c];
      for (const Record& record : records) {
        std::memcpy(out, &rows.bytes[static_cast<size_t>(record.value) * rows.row_bytes], rows.row_bytes);
        out += rows.row_bytes;
      }
    }
    return {};
  }

 private:
  struct Rows {
    std::vector<uint8_t> bytes;
    size_t row_bytes = 0;
  };
  std::vector<Rows> tensors_;
};

class BytesDecoder : public Decoder {
 public:
  Status Decode(std::span<const Record> records, std::span<uint8_t* const> columns) override {
    auto* out = reinterpret_cast<BytesRef*>(columns[0]);
    for (const Record& record : records) {
      const std::span<const uint8_t> bytes = record.bytes();
      *out++ = {bytes.data(), bytes.size()};
    }
    return {};
  }
};

class IndexDecoder : public Decoder {
 public:
  explicit IndexDecoder(std::unique_ptr<Decoder> rest) : rest_(std::move(rest)) {}

  Status Decode(std::span<const Record> records, std::span<uint8_t* const> columns) override {
    uint8_t* out = columns[0];
    for (const Record& record : records) {
      std::memcpy(out, &record.index, sizeof record.index);
      out += sizeof record.index;
    }
    return rest_->Decode(records, columns.subspan(1));
  }

 private:
  const std::unique_ptr<Decoder> rest_;
};

}  // namespace

std::unique_ptr<Decoder> MakeRangeDecoder(DType dtype) { return std::make_unique<RangeDecoder>(dtype); }

std::unique_ptr<Decoder> MakeTensorsDecoder(const TensorsSource& source) {
  return std::make_unique<TensorsDecoder>(source);
}

std::unique_ptr<Decoder> MakeBytesDecoder() { return std::make_unique<BytesDecoder>(); }

std::unique_ptr<Decoder> MakeIndexDecoder(std::unique_ptr<Decoder> rest) {
  return std::make_unique<IndexDecoder>(std::move(rest));
}

}  // namespace headrace::side
