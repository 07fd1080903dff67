// tf.strings.to_number: decimal text, with spaces around it, of the dtype's range.
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "sidecar/decode/convert.h"
#include "sidecar/decode/map_operation.h"

namespace headrace::side {
namespace {

std::string_view Trimmed(const BytesRef& bytes) {
  std::string_view text(reinterpret_cast<const char*>(bytes.data), bytes.size);
  constexpr std::string_view kSpaces = " \t\n\v\f\r";
  const size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return {};
  text = text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1);
  // from_chars takes no plus sign.
  if (text.size() > 1 && text[0] == '+' && text[1] != '-' && text[1] != '+') text.remove_prefix(1);
  return text;
}

// For a message: short, and only what can be printed.
std::string Shown(const BytesRef& bytes) {
  std::string text;
  for (uint64_t i = 0; i < bytes.size && i < 40; ++i) {
    const auto c = static_cast<char>(bytes.data[i]);
    text += c >= ' ' && c <= '~' ? c : '?';
  }
  return '"' + text + (bytes.size > 40 ? "..." : "") + '"';
}

template <typename T>
bool Parse(std::string_view text, T* value) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *value);
  if (error == std::errc()) return stop == end;
  if constexpr (std::is_floating_point_v<T>) {
    if (error == std::errc::result_out_of_range && stop == end) {  // TensorFlow gives infinity, or zero
      const std::string copy(text);
      *value = static_cast<T>(std::strtod(copy.c_str(), nullptr));
      return true;
    }
  }
  return false;
}

template <typename T>
class ToNumberOperator : public MapOperator {
 public:
  explicit ToNumberOperator(const MapSite& site) : site_(site) {}

  Status Apply(std::span<const Record> records, const uint8_t* in, uint8_t* out) override {
    const auto* const from = reinterpret_cast<const BytesRef*>(in);
    auto* const to = reinterpret_cast<T*>(out);
    for (size_t i = 0; i < records.size(); ++i) {
      if (Parse(Trimmed(from[i]), &to[i])) continue;
      return Corrupt(site_.Where(records[i]) + Shown(from[i]) + " is no " + std::string(DTypeName(site_.output.dtype)) +
                     "; correct the data, or " + site_.field + ".stringToNumber");
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
