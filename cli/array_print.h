// Batches as text: as numpy prints arrays, on one line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/spec/input_spec.h"

namespace headrace::cli {

// A tensor in memory, row-major. Does not own its data.
struct TensorView {
  std::string name;
  DType dtype = DType::kInt64;
  std::vector<int64_t> shape;
  const void* data = nullptr;
  const int64_t* row_splits = nullptr;  // of strings and of ragged tensors, as headrace_tensor has them

  bool ragged() const { return row_splits != nullptr && dtype != DType::kString; }
  // The number of values, or of strings. REQUIRES: not ragged.
  int64_t count() const;
};

// String i of the tensor. REQUIRES: the dtype is string.
std::string_view StringAt(const TensorView& tensor, int64_t i);

// Value i of the tensor, as the nearest double; 64-bit integers beyond 2^53 lose their last digits.
double ValueAsDouble(const TensorView& tensor, int64_t i);
// Value i by itself, as Python's str() of it: "7", "0.5", "1e-05", "True".
std::string ValueText(const TensorView& tensor, int64_t i);
// Value i as a signed integer. REQUIRES: the dtype is an integer of at most 64 bits, or bool.
int64_t ValueAsInteger(const TensorView& tensor, int64_t i);
bool IsFloating(DType dtype);

struct PrintLimits {
  int64_t threshold = 40;   // tensors of more values are elided ...
  int64_t edge_values = 3;  // ... to so many values at either end of the last dimension
  int64_t edge_items = 1;   // ... and so many items at either end of the others
};

// "[0 1]", "[[1.  0.5] [0.  2. ]]", "[b'a' b'\\xff']", "[]"; elided: "[ 0  1  2 ... 61 62 63]". Of a string that is
// long only the beginning: "b'0123456789'...". REQUIRES: not ragged.
std::string PrintArray(const TensorView& tensor, const PrintLimits& limits = {});

}  // namespace headrace::cli
