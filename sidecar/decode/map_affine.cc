// x * scale + offset in x's own float type, rounded after each of the two as TensorFlow's operators are.
#include <algorithm>

#include "sidecar/decode/map_operation.h"
#include "sidecar/decode/values.h"

namespace headrace::side {
namespace {

constexpr size_t kTile = 64;  // factors that the inner loop has, at least

// Of one of the two operators: a number for each value, repeated after a whole number of last dimensions.
template <typename T>
auto Numbers(const std::optional<double>& one, const std::vector<double>& several, double otherwise, size_t count) {
  std::vector<decltype(Load(T{}))> numbers(count);
  for (size_t i = 0; i < count; ++i) {
    numbers[i] = Load(Store<T>(several.empty() ? one.value_or(otherwise) : several[i % several.size()]));
  }
  return numbers;
}

template <typename T>
class AffineOperator : public ValueOperator {
 public:
  AffineOperator(const AffineOp& affine, const MapSite& site)
      : ValueOperator(site.values()),
        tile_(TileOf(affine)),
        has_offset_(affine.offset || !affine.offsets.empty()),
        scale_(Numbers<T>(affine.scale, affine.scales, 1, tile_)),
        offset_(Numbers<T>(affine.offset, affine.offsets, 0, tile_)) {}

  void ApplyValues(size_t count, const uint8_t* in, uint8_t* out) override {
    const auto* const from = reinterpret_cast<const T*>(in);
    auto* const to = reinterpret_cast<T*>(out);
    for (size_t begin = 0; begin < count; begin += tile_) {
      const size_t here = std::min(tile_, count - begin);
      for (size_t i = 0; i < here; ++i) to[begin + i] = Store<T>(Load(from[begin + i]) * scale_[i]);
      if (!has_offset_) continue;
      for (size_t i = 0; i < here; ++i) to[begin + i] = Store<T>(Load(to[begin + i]) + offset_[i]);
    }
  }

 private:
  static size_t TileOf(const AffineOp& affine) {
    const size_t period = std::max({affine.scales.size(), affine.offsets.size(), size_t{1}});
    return (kTile + period - 1) / period * period;
  }

  using Value = decltype(Load(T{}));
  const size_t tile_;
  const bool has_offset_;
  const std::vector<Value> scale_;
  const std::vector<Value> offset_;
};

}  // namespace

std::unique_ptr<MapOperator> MakeMapOperator(const AffineOp& affine, const MapSite& site) {
  switch (site.input.dtype) {
    case DType::kFloat16: return std::make_unique<AffineOperator<Float16>>(affine, site);
    case DType::kBfloat16: return std::make_unique<AffineOperator<Bfloat16>>(affine, site);
    case DType::kFloat64: return std::make_unique<AffineOperator<double>>(affine, site);
    default: return std::make_unique<AffineOperator<float>>(affine, site);  // MappedType lets in floats only
  }
}

}  // namespace headrace::side
