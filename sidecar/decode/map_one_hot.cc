// tf.one_hot: an integer becomes a row of `depth` values, 1 at its place and 0 elsewhere; all 0 if it has no place.
#include <cstring>

#include "sidecar/decode/map_operation.h"
#include "sidecar/decode/values.h"

namespace headrace::side {
namespace {

template <typename T>
class OneHotOperator : public MapOperator {
 public:
  OneHotOperator(const OneHotOp& one_hot, size_t values)
      : depth_(static_cast<uint64_t>(one_hot.depth)), value_bytes_(DTypeSize(one_hot.dtype)), values_(values) {
    StoreAs(one_hot.dtype, 1, one_);
  }

  Status Apply(std::span<const Record> records, const uint8_t* in, uint8_t* out) override {
    const auto* const from = reinterpret_cast<const T*>(in);
    const size_t count = records.size() * values_;
    std::memset(out, 0, count * depth_ * value_bytes_);
    for (size_t i = 0; i < count; ++i) {
      // NOLINTNEXTLINE(bugprone-signed-char-misuse): a negative one becomes a place beyond any depth
      const auto place = static_cast<uint64_t>(from[i]);
      if (place < depth_) std::memcpy(out + (i * depth_ + place) * value_bytes_, one_, value_bytes_);
    }
    return {};
  }

 private:
  const uint64_t depth_;
  const size_t value_bytes_;
  const size_t values_;
  uint8_t one_[8];
};

}  // namespace

std::unique_ptr<MapOperator> MakeMapOperator(const OneHotOp& one_hot, const MapSite& site) {
  return WithType(site.input.dtype, [&](auto type) -> std::unique_ptr<MapOperator> {
    return std::make_unique<OneHotOperator<typename decltype(type)::type>>(one_hot, site.values());
  });
}

}  // namespace headrace::side
