#include "sidecar/loader/feed.h"

#include <cstring>

#include "common/ring/geometry.h"

namespace headrace::side {

int64_t PrefetchSteps(const Feed& feed) {
  return feed.plan().spec.delivery.prefetch_steps.value_or(feed.default_prefetch_steps());
}

void WriteEmpty(const std::vector<TensorSpec>& element_spec, uint8_t* slot,
                std::vector<ring::ComponentExtent>* extents) {
  extents->clear();
  uint64_t begin = 0;
  for (const TensorSpec& component : element_spec) {
    ring::ComponentExtent& extent = extents->emplace_back(ring::ComponentExtent{begin, 0, component.shape.size(), {}});
    for (size_t d = 1; d < component.shape.size(); ++d) {
      extent.dims[d] = component.shape[d] == kUnknownDim ? 0 : component.shape[d];
    }
    const bool splits = component.ragged || component.dtype == DType::kString;
    if (component.ragged) extent.dims[1] = kUnknownDim;
    if (splits) {
      // The values' place has no bytes, but is not that of the splits.
      extent.splits_offset = begin += ring::kTensorAlign;
      const uint64_t bytes = ring::NumSplits(extent).value_or(1) * sizeof(int64_t);
      std::memset(slot + begin, 0, bytes);
      begin = AlignTensor(begin + bytes);
    } else if (component.shape.empty()) {
      extent.bytes = DTypeSize(component.dtype);
      std::memset(slot + begin, 0, extent.bytes);
    }
    begin = AlignTensor(begin + extent.bytes);
  }
}

}  // namespace headrace::side
