#include "sidecar/loader/feed.h"

#include <cstring>

namespace headrace::side {

void WriteEmpty(const std::vector<TensorSpec>& element_spec, uint8_t* slot,
                std::vector<ring::ComponentExtent>* extents) {
  extents->clear();
  uint64_t begin = 0;
  for (const TensorSpec& component : element_spec) {
    ring::ComponentExtent& extent = extents->emplace_back(ring::ComponentExtent{begin, 0, component.shape.size(), {}});
    for (size_t d = 1; d < component.shape.size(); ++d) {
      extent.dims[d] = component.shape[d] == kUnknownDim ? 0 : component.shape[d];
    }
    if (component.shape.empty()) {
      extent.bytes = DTypeSize(component.dtype);
      std::memset(slot + begin, 0, extent.bytes);
    }
    begin = AlignTensor(begin + extent.bytes);
  }
}

}  // namespace headrace::side
