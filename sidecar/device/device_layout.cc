#include "sidecar/device/device_layout.h"

#include <algorithm>

#include "common/ring/device_part.h"

namespace headrace::device {

const GpuImages* FindImages(std::span<const GpuImages> images, size_t component) {
  const auto found =
      std::find_if(images.begin(), images.end(), [&](const GpuImages& i) { return i.component == component; });
  return found == images.end() ? nullptr : &*found;
}

uint64_t PlaceInDeviceSlot(std::span<const GpuImages> images, std::span<ring::ComponentExtent> extents) {
  uint64_t end = 0;
  for (size_t c = 0; c < extents.size(); ++c) {
    ring::ComponentExtent& extent = extents[c];
    const GpuImages* const made = FindImages(images, c);
    extent.device_offset = (end + ring::kTensorAlign - 1) / ring::kTensorAlign * ring::kTensorAlign;
    extent.device_bytes = 0;
    if (!ring::GoesToDevice(extent)) continue;
    extent.device_bytes = extent.bytes * (made == nullptr ? 1 : DTypeSize(made->program.result));
    end = extent.device_offset + extent.device_bytes;
  }
  return end;
}

}  // namespace headrace::device
