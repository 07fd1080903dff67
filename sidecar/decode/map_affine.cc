// x * scale + offset in x's own float type, rounded after each of the two as TensorFlow's operators are.
#include "sidecar/decode/map_operation.h"
#include "sidecar/decode/values.h"

namespace headrace::side {
namespace {

template <typename T>
class AffineOperator : public ValueOperator {
 public:
  AffineOperator(const AffineOp& affine, size_t values)
      : ValueOperator(values),
        has_offset_(affine.offset.has_value()),
        scale_(Load(Store<T>(affine.scale.value_or(1)))),
        offset_(Load(Store<T>(affine.offset.value_or(0)))) {}

  void ApplyValues(size_t count, const uint8_t* in, uint8_t* out) override {
    const auto* const from = reinterpret_cast<const T*>(in);
    auto* const to = reinterpret_cast<T*>(out);
    for (size_t i = 0; i < count; ++i) to[i] = Store<T>(Load(from[i]) * scale_);
    if (!has_offset_) return;
    for (size_t i = 0; i < count; ++i) to[i] = Store<T>(Load(to[i]) + offset_);
  }

 private:
  using Value = decltype(Load(T{}));
  const bool has_offset_;
  const Value scale_;
  const Value offset_;
};

}  // namespace

std::unique_ptr<MapOperator> MakeMapOperator(const AffineOp& affine, const MapSite& site) {
  switch (site.input.dtype) {
    case DType::kFloat16: return std::make_unique<AffineOperator<Float16>>(affine, site.values());
    case DType::kBfloat16: return std::make_unique<AffineOperator<Bfloat16>>(affine, site.values());
    case DType::kFloat64: return std::make_unique<AffineOperator<double>>(affine, site.values());
    default: return std::make_unique<AffineOperator<float>>(affine, site.values());  // MappedType lets in floats only
  }
}

}  // namespace headrace::side
