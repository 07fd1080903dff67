// Numbers as bytes of a dtype.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "common/base/half.h"
#include "common/spec/input_spec.h"

namespace headrace::side {

// Calls fn(std::type_identity<T>) with the C++ type of an integer, bool (as uint8_t) or float32/64 dtype. float16 and
// bfloat16 have none and are the caller's, as are strings.
template <typename Fn>
auto WithType(DType dtype, Fn&& fn) {
  switch (dtype) {
    case DType::kInt8: return fn(std::type_identity<int8_t>());
    case DType::kBool:
    case DType::kUint8: return fn(std::type_identity<uint8_t>());
    case DType::kInt16: return fn(std::type_identity<int16_t>());
    case DType::kUint16: return fn(std::type_identity<uint16_t>());
    case DType::kInt32: return fn(std::type_identity<int32_t>());
    case DType::kUint32: return fn(std::type_identity<uint32_t>());
    case DType::kInt64: return fn(std::type_identity<int64_t>());
    case DType::kUint64: return fn(std::type_identity<uint64_t>());
    case DType::kFloat16:
    case DType::kBfloat16:
    case DType::kFloat32: return fn(std::type_identity<float>());
    case DType::kFloat64: return fn(std::type_identity<double>());
    case DType::kString: break;
  }
  return fn(std::type_identity<double>());
}

inline bool IsFloat(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBfloat16 || dtype == DType::kFloat32 || dtype == DType::kFloat64;
}

// Writes `value` as one `dtype` at `out`. Integers wrap and floats truncate, as numpy's astype.
template <typename V>
void StoreAs(DType dtype, V value, uint8_t* out) {
  if (dtype == DType::kFloat16 || dtype == DType::kBfloat16) {
    const auto as_float = static_cast<float>(value);
    const uint16_t half = dtype == DType::kFloat16 ? ToFloat16(as_float) : ToBfloat16(as_float);
    std::memcpy(out, &half, sizeof half);
    return;
  }
  if (dtype == DType::kBool) {
    *out = value != V{0};
    return;
  }
  WithType(dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    T converted;
    if constexpr (std::is_integral_v<T> && std::is_floating_point_v<V>) {
      converted = static_cast<T>(static_cast<int64_t>(value));
    } else {
      converted = static_cast<T>(value);  // NOLINT(bugprone-signed-char-misuse): an int8 is a number here
    }
    std::memcpy(out, &converted, sizeof converted);
  });
}

// Whether the integer `value` is one of `dtype`'s. Every integer is of the float dtypes.
inline bool Fits(DType dtype, int64_t value) {
  if (IsFloat(dtype)) return true;
  if (dtype == DType::kBool) return value == 0 || value == 1;
  return WithType(dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    if constexpr (std::is_integral_v<T>) {
      if constexpr (std::is_same_v<T, uint64_t>) return value >= 0;
      return value >= static_cast<int64_t>(std::numeric_limits<T>::min()) &&
             (sizeof(T) == 8 || value <= static_cast<int64_t>(std::numeric_limits<T>::max()));
    }
    return true;
  });
}

}  // namespace headrace::side
