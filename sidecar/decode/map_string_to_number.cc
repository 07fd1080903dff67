// tf.strings.to_number: decimal text, with spaces around it, of the dtype's range.
#include <string_view>

#include "sidecar/decode/convert.h"
#include "sidecar/decode/map_operation.h"
#include "sidecar/decode/number_text.h"

namespace headrace::side {
namespace {

template <typename T>
class ToNumberOperator : public MapOperator {
 public:
  explicit ToNumberOperator(const MapSite& site) : site_(site) {}

  Status Apply(std::span<const Record> records, const uint8_t* in, uint8_t* out) override {
    const auto* const from = reinterpret_cast<const BytesRef*>(in);
    auto* const to = reinterpret_cast<T*>(out);
    for (size_t i = 0; i < records.size(); ++i) {
      const std::string_view text(reinterpret_cast<const char*>(from[i].data), from[i].size);
      if (ParseNumber(text, &to[i])) continue;
      return Corrupt(site_.Where(records[i]) + ShownText(text) + " is no " +
                     std::string(DTypeName(site_.output.dtype)) + "; correct the data, or " + site_.field +
                     ".stringToNumber");
    }
    return {};
  }

 private:
  const MapSite site_;
};

}  // namespace

std::unique_ptr<MapOperator> MakeMapOperator(const StringToNumberOp&, const MapSite& site) {
  return WithType(site.output.dtype, [&](auto type) -> std::unique_ptr<MapOperator> {
    return std::make_unique<ToNumberOperator<typename decltype(type)::type>>(site);
  });
}

}  // namespace headrace::side
