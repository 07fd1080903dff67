#include "client/tensor.h"

#include "common/ring/geometry.h"

namespace headrace::client {

bool MeasureTensor(const Component& component, const ring::ComponentExtent& extent, Strides* strides) {
  const TensorSpec& spec = component.spec;
  const bool is_string = spec.dtype == DType::kString;
  const size_t outer = spec.ragged ? 2 : 0;  // dimensions that are the row splits'
  bool whole = extent.ndim == spec.shape.size() && (extent.splits_offset != 0) == (is_string || spec.ragged);
  if (whole && spec.ragged) whole = extent.dims[0] >= 0 && extent.dims[1] == kUnknownDim;
  int64_t values = 1;
  for (size_t d = extent.ndim; whole && d-- > outer;) {
    (*strides)[d] = values;
    whole = extent.dims[d] >= 0 && !__builtin_mul_overflow(values, extent.dims[d], &values);
  }
  int64_t bytes = 0;
  whole = whole && !__builtin_mul_overflow(values, component.value_bytes, &bytes);
  if (spec.ragged) {
    (*strides)[0] = 0;
    (*strides)[1] = values;
    whole = whole && bytes > 0 && extent.bytes % static_cast<uint64_t>(bytes) == 0;
  } else if (!is_string) {
    whole = whole && static_cast<uint64_t>(bytes) == extent.bytes;
  }
  return whole;
}

const int64_t* RowSplits(const ring::ComponentExtent& extent, const uint8_t* slot) {
  return extent.splits_offset == 0 ? nullptr : reinterpret_cast<const int64_t*>(slot + extent.splits_offset);
}

int64_t NumSplitValues(const ring::ComponentExtent& extent, const uint8_t* slot) {
  const int64_t* const splits = RowSplits(extent, slot);
  return splits == nullptr ? 0 : splits[ring::NumSplits(extent).value_or(1) - 1];
}

Status CheckRowSplits(const Component& component, const ring::ComponentExtent& extent, const Strides& strides,
                      const uint8_t* slot) {
  const int64_t* const splits = RowSplits(extent, slot);
  const int64_t unit = component.value_bytes * (component.spec.ragged ? strides[1] : 1);
  const int64_t values = static_cast<int64_t>(extent.bytes) / unit;
  const uint64_t last = ring::NumSplits(extent).value_or(1) - 1;
  for (uint64_t i = 0; i <= last; ++i) {
    const int64_t least = i == 0 ? 0 : splits[i - 1];
    const int64_t most = i == 0 ? 0 : values;
    if (splits[i] >= least && splits[i] <= most && (i < last || splits[i] == values)) continue;
    return Corrupt("row split " + std::to_string(i) + " of " + std::to_string(last) + " is " +
                   std::to_string(splits[i]) + ", the one before " + std::to_string(least) + ", and there are " +
                   std::to_string(values) + " values");
  }
  return {};
}

}  // namespace headrace::client
