// Columns as arrays of C++ values, for loops that the compiler can vectorise.
#pragma once

#include <cmath>
#include <concepts>
#include <limits>
#include <type_traits>

#include "sidecar/decode/convert.h"

namespace headrace::side {

// How values of the dtypes lie in memory that have no arithmetic type of their own.
struct Bool {
  uint8_t value;
};
struct Float16 {
  uint16_t bits;
};
struct Bfloat16 {
  uint16_t bits;
};

// Calls fn(std::type_identity<T>) with the type in memory of any dtype but string.
template <typename Fn>
auto WithStorage(DType dtype, Fn&& fn) {
  if (dtype == DType::kBool) return fn(std::type_identity<Bool>());
  if (dtype == DType::kFloat16) return fn(std::type_identity<Float16>());
  if (dtype == DType::kBfloat16) return fn(std::type_identity<Bfloat16>());
  return WithType(dtype, fn);
}

// The value itself, in an arithmetic type.
template <typename T>
T Load(T value) {
  return value;
}
inline uint8_t Load(Bool value) { return value.value; }
inline float Load(Float16 value) { return FromFloat16(value.bits); }
inline float Load(Bfloat16 value) { return FromBfloat16(value.bits); }

// tf.cast's meaning: floats lose their fraction, integers wrap, bool is whether it is not 0. A float that no integer of
// the type can hold (TensorFlow leaves that open) becomes the nearest that can, NaN becomes 0.
template <typename To, typename V>
To Store(V value) {
  if constexpr (std::is_same_v<To, Bool>) {
    return {static_cast<uint8_t>(value != V{0})};
  } else if constexpr (std::is_same_v<To, Float16>) {
    return {ToFloat16(static_cast<float>(value))};
  } else if constexpr (std::is_same_v<To, Bfloat16>) {
    return {ToBfloat16(static_cast<float>(value))};
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<V>) {
    using Limits = std::numeric_limits<To>;
    if (std::isnan(value)) return 0;
    // The largest of To may not be a float, but the first beyond it is a power of two.
    constexpr V kBeyond = static_cast<V>(uint64_t{1} << (Limits::digits - 1)) * V{2};
    if (value >= kBeyond) return Limits::max();
    if (value <= static_cast<V>(Limits::min())) return Limits::min();
    return static_cast<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace headrace::side
