// Values of columns in the types that features ask for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/spec/dtype.h"

namespace headrace::side {

// Whether values of `from` can be had as `to`. Integers and bools become any number: as integers, those that fit.
// Floats become floats, rounded, but no integers, which would lose their fractions.
bool Casts(DType from, DType to);

// Writes `count` values at `in`, of any alignment, to `out`, which is aligned for its type. Returns how many were
// written before the first that `to` cannot hold: `count` if all were.
using ColumnCast = size_t (*)(const uint8_t* in, size_t count, uint8_t* out);
// nullptr where the types are the same. REQUIRES: Casts(from, to).
ColumnCast CastOf(DType from, DType to);

// Row r of `out` is the r-th value of each of the columns, one after another. Any alignment. The values have 1, 2, 4 or
// 8 bytes.
void Interleave(std::span<const uint8_t* const> columns, size_t rows, size_t value_bytes, uint8_t* out);

}  // namespace headrace::side
