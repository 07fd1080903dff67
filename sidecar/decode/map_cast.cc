// tf.cast
#include "sidecar/decode/map_operation.h"
#include "sidecar/decode/values.h"

namespace headrace::side {
namespace {

template <typename From, typename To>
class CastOperator : public ValueOperator {
 public:
  using ValueOperator::ValueOperator;
  void ApplyValues(size_t count, const uint8_t* in, uint8_t* out) override {
    const auto* const from = reinterpret_cast<const From*>(in);
    auto* const to = reinterpret_cast<To*>(out);
    for (size_t i = 0; i < count; ++i) to[i] = Store<To>(Load(from[i]));
  }
};

}  // namespace

std::unique_ptr<MapOperator> MakeMapOperator(const CastOp&, const MapSite& site) {
  return WithStorage(site.input.dtype, [&](auto from) {
    return WithStorage(site.output.dtype, [&](auto to) -> std::unique_ptr<MapOperator> {
      return std::make_unique<CastOperator<typename decltype(from)::type, typename decltype(to)::type>>(site.values());
    });
  });
}

}  // namespace headrace::side
