#include "sidecar/decode/column_cast.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "sidecar/core/prefetch.h"
#include "sidecar/decode/values.h"

namespace headrace::side {
namespace {

// Whether some value of From is none of To's.
template <typename From, typename To>
constexpr bool Narrows() {
  if constexpr (std::is_integral_v<From> && std::is_integral_v<To>) {
    using Limits = std::numeric_limits<From>;
    return !std::in_range<To>(Limits::min()) || !std::in_range<To>(Limits::max());
  }
  return false;
}

template <typename T>
T ValueAt(const uint8_t* values, size_t i) {
  T value;
  std::memcpy(&value, values + i * sizeof value, sizeof value);
  return value;
}

template <typename From, typename To>
size_t CastValues(const uint8_t* in, size_t count, uint8_t* out) {
  auto* const to = reinterpret_cast<To*>(out);
  if constexpr (std::is_same_v<To, Bool> && std::is_integral_v<From>) {
    for (size_t i = 0; i < count; ++i) {
      const From value = ValueAt<From>(in, i);
      if (value != 0 && value != 1) return i;
      to[i].value = static_cast<uint8_t>(value);
    }
  } else if constexpr (Narrows<From, To>()) {
    bool all = true;
    for (size_t i = 0; i < count; ++i) {
      const From value = ValueAt<From>(in, i);
      all &= std::in_range<To>(value);
      to[i] = static_cast<To>(value);  // NOLINT(bugprone-signed-char-misuse): an int8 is a number here
    }
    if (all) return count;
    size_t fit = 0;
    while (std::in_range<To>(ValueAt<From>(in, fit))) ++fit;
    return fit;
  } else {
    for (size_t i = 0; i < count; ++i) to[i] = Store<To>(Load(ValueAt<From>(in, i)));
  }
  return count;
}

// Four columns of four bytes: tiles of 4 x 4 are turned in registers. Without loops, which GCC would leave in memory.
using Lane = uint32_t __attribute__((vector_size(16)));

Lane Four(const uint8_t* values) {
  Lane lane;
  std::memcpy(&lane, values, sizeof lane);
  return lane;
}

void TurnFour(const uint8_t* const* columns, size_t rows, size_t row_bytes, uint8_t* out) {
  for (size_t r = 0; r + 4 <= rows; r += 4, out += 4 * row_bytes) {
    const Lane c0 = Four(columns[0] + r * 4);
    const Lane c1 = Four(columns[1] + r * 4);
    const Lane c2 = Four(columns[2] + r * 4);
    const Lane c3 = Four(columns[3] + r * 4);
    const Lane low01 = __builtin_shufflevector(c0, c1, 0, 4, 1, 5);
    const Lane high01 = __builtin_shufflevector(c0, c1, 2, 6, 3, 7);
    const Lane low23 = __builtin_shufflevector(c2, c3, 0, 4, 1, 5);
    const Lane high23 = __builtin_shufflevector(c2, c3, 2, 6, 3, 7);
    const Lane r0 = __builtin_shufflevector(low01, low23, 0, 1, 4, 5);
    const Lane r1 = __builtin_shufflevector(low01, low23, 2, 3, 6, 7);
    const Lane r2 = __builtin_shufflevector(high01, high23, 0, 1, 4, 5);
    const Lane r3 = __builtin_shufflevector(high01, high23, 2, 3, 6, 7);
    std::memcpy(out, &r0, sizeof r0);
    std::memcpy(out + row_bytes, &r1, sizeof r1);
    std::memcpy(out + 2 * row_bytes, &r2, sizeof r2);
    std::memcpy(out + 3 * row_bytes, &r3, sizeof r3);
  }
}

template <size_t Bytes>
void Scatter(std::span<const uint8_t* const> columns, size_t begin, size_t rows, size_t row_bytes, uint8_t* out) {
  for (size_t c = 0; c < columns.size(); ++c) {
    for (size_t r = begin; r < rows; ++r) {
      std::memcpy(out + r * row_bytes + c * Bytes, columns[c] + r * Bytes, Bytes);
    }
  }
}

void Interleave4(std::span<const uint8_t* const> columns, size_t rows, size_t row_bytes, uint8_t* out) {
  size_t c = 0;
  for (; c + 4 <= columns.size(); c += 4) {
    TurnFour(&columns[c], rows, row_bytes, out + c * 4);
    Scatter<4>(columns.subspan(c, 4), rows / 4 * 4, rows, row_bytes, out + c * 4);
  }
  Scatter<4>(columns.subspan(c), 0, rows, row_bytes, out + c * 4);
}

}  // namespace

bool Casts(DType from, DType to) {
  if (from == DType::kString || to == DType::kString) return from == to;
  return !IsFloat(from) || IsFloat(to);
}

ColumnCast CastOf(DType from, DType to) {
  if (from == to) return nullptr;
  return WithStorage(from, [&](auto from_type) {
    return WithStorage(to, [](auto to_type) -> ColumnCast {
      return CastValues<typename decltype(from_type)::type, typename decltype(to_type)::type>;
    });
  });
}

void Interleave(std::span<const uint8_t* const> columns, size_t rows, size_t value_bytes, uint8_t* out) {
  const size_t row_bytes = columns.size() * value_bytes;
  // So few rows at a time that what is written stays in the first cache from one group of columns to the next.
  constexpr size_t kBytesAtATime = 16 << 10;
  const size_t step = std::max<size_t>(kBytesAtATime / row_bytes / 4 * 4, 4);
  const uint8_t* here[64];
  for (size_t begin = 0; begin < rows; begin += step) {
    const size_t count = std::min(step, rows - begin);
    const size_t next = std::min(step, rows - begin - count);
    for (const uint8_t* const column : columns) {
      PrefetchBytes(column + (begin + count) * value_bytes, next * value_bytes);
    }
    for (size_t c = 0; c < columns.size(); c += std::size(here)) {
      const size_t group = std::min(std::size(here), columns.size() - c);
      for (size_t k = 0; k < group; ++k) here[k] = columns[c + k] + begin * value_bytes;
      const std::span<const uint8_t* const> some(here, group);
      uint8_t* const to = out + begin * row_bytes + c * value_bytes;
      switch (value_bytes) {
        case 1: Scatter<1>(some, 0, count, row_bytes, to); break;
        case 2: Scatter<2>(some, 0, count, row_bytes, to); break;
        case 4: Interleave4(some, count, row_bytes, to); break;
        default: Scatter<8>(some, 0, count, row_bytes, to); break;
      }
    }
  }
}

}  // namespace headrace::side
