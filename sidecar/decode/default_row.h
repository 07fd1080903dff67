// What stands in where a record lacks a feature.
#pragma once

#include <vector>

#include "common/spec/tensor_fields.h"
#include "sidecar/decode/convert.h"

namespace headrace::side {

// The values of one row, as bytes: the feature's default, or where a paddedBatch pads it its padding; empty if it has
// neither. REQUIRES: a shape without unknown dimensions, and not of strings.
inline std::vector<uint8_t> DefaultRow(const Feature& feature) {
  std::vector<uint8_t> row;
  if (!feature.padding && !feature.has_default) return row;
  const size_t value_bytes = DTypeSize(feature.dtype);
  const auto values = static_cast<size_t>(NumValues(feature.shape));
  row.resize(values * value_bytes);
  for (size_t i = 0; i < values; ++i) {
    const double value = feature.padding                     ? *feature.padding
                         : feature.default_value.size() == 1 ? feature.default_value[0]
                                                             : feature.default_value[i];
    StoreAs(feature.dtype, value, &row[i * value_bytes]);
  }
  return row;
}

}  // namespace headrace::side
