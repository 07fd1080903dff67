// Numbers as people and programs write them.
#pragma once

#include <charconv>
#include <cstdlib>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>

#include "sidecar/decode/convert.h"

namespace headrace::side {

// Without spaces around it, nor a plus sign before it.
inline std::string_view TrimmedNumber(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\n\v\f\r";
  const size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return {};
  text = text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1);
  // from_chars takes no plus sign.
  if (text.size() > 1 && text[0] == '+' && text[1] != '-' && text[1] != '+') text.remove_prefix(1);
  return text;
}

// All of `text`, decimal, with spaces around it: integers within T's range; floats rounded to the nearest T, beyond its
// range infinity or zero, also "inf", "infinity" and "nan" in any case. false: it is none.
template <typename T>
bool ParseNumber(std::string_view text, T* value) {
  text = TrimmedNumber(text);
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *value);
  if (stop != end) return false;
  if constexpr (std::is_floating_point_v<T>) {
    if (error == std::errc::result_out_of_range) {
      const std::string copy(text);
      *value = std::is_same_v<T, float> ? std::strtof(copy.c_str(), nullptr)
                                        : static_cast<T>(std::strtod(copy.c_str(), nullptr));
      return true;
    }
  }
  return error == std::errc();
}

// As StoreAs, the number or truth ("true", "1") of `dtype` that all of `text` is, with spaces around it. false: it is
// none. REQUIRES: not a string.
inline bool StoreNumberText(DType dtype, std::string_view text, uint8_t* out) {
  if (dtype == DType::kBool) {
    text = TrimmedNumber(text);
    *out = text == "1" || text == "true" || text == "True" || text == "TRUE";
    return *out != 0 || text == "0" || text == "false" || text == "False" || text == "FALSE";
  }
  return WithType(dtype, [&](auto type) {
    typename decltype(type)::type value;
    if (!ParseNumber(text, &value)) return false;
    StoreAs(dtype, value, out);
    return true;
  });
}

// Data in a message: short, and only what can be printed.
inline std::string ShownText(std::string_view text) {
  std::string shown = "\"";
  for (const char c : text.substr(0, 40)) shown += c >= ' ' && c <= '~' ? c : '?';
  return shown + (text.size() > 40 ? "...\"" : "\"");
}

}  // namespace headrace::side
