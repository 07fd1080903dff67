// tf.io.decode_raw with fixed_length: the bytes of a string as values, little-endian.
#include <bit>
#include <cstring>

#include "sidecar/decode/decoder.h"
#include "sidecar/decode/map_operation.h"

namespace headrace::side {
namespace {

static_assert(std::endian::native == std::endian::little, "the bytes are copied as they are");

class DecodeRawOperator : public MapOperator {
 public:
  explicit DecodeRawOperator(const MapSite& site) : site_(site), row_bytes_(RowBytes(site.output)) {}

  Status Apply(std::span<const Record> records, const uint8_t* in, uint8_t* out) override {
    const auto* const from = reinterpret_cast<const BytesRef*>(in);
    for (size_t i = 0; i < records.size(); ++i) {
      if (from[i].size != row_bytes_) return WrongSize(records[i], from[i].size);
      std::memcpy(out + i * row_bytes_, from[i].data, row_bytes_);
    }
    if (site_.output.dtype == DType::kBool) {  // a bool of another value than 0 and 1 is nobody's
      for (size_t i = 0; i < records.size() * row_bytes_; ++i) out[i] = out[i] != 0 ? 1 : 0;
    }
    return {};
  }

 private:
  Status WrongSize(const Record& record, uint64_t found) const {
    return Corrupt(site_.Where(record) + "holds " + std::to_string(found) + " bytes, and " + site_.field +
                   ".decodeRaw takes " + std::to_string(row_bytes_) + "; correct its dtype and shape, or the data");
  }

  const MapSite site_;
  const size_t row_bytes_;
};

}  // namespace

std::unique_ptr<MapOperator> MakeMapOperator(const DecodeRawOp&, const MapSite& site) {
  return std::make_unique<DecodeRawOperator>(site);
}

}  // namespace headrace::side
