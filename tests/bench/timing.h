// What the benchmarks of single calls measure with.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "common/ring/futex.h"

namespace headrace::bench {

inline double NowNs() { return static_cast<double>(ring::MonotonicNs()); }

// REQUIRES: not empty.
inline double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

}  // namespace headrace::bench
