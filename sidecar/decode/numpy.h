// NumPy's .npy format (numpy/lib/format.py, "Format Version 1.0" to 3.0): magic, version, header length, a Python dict
// as text, values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/spec/dtype.h"

namespace headrace::side {

struct NumPyHeader {
  std::string descr;           // "<f4"
  bool fortran_order = false;  // columns before rows
  std::vector<int64_t> shape;
  size_t bytes = 0;  // of the header: where the values begin
};

// Reads the header that `bytes`, the beginning of a file or all of it, must hold. Errors: Corrupt, in words that follow
// the file's place.
Result<NumPyHeader> ReadNumPyHeader(std::span<const uint8_t> bytes);

// numpy's name of a dtype, little-endian; "" for bfloat16, which has none.
std::string NumPyName(DType dtype);

// "[2, 3]"
std::string ShapeText(std::span<const int64_t> shape);

}  // namespace headrace::side
