// How a batch lies in a GPU's slot where that is laid out by itself, since the GPU makes tensors of images there.
#pragma once

#include <cstdint>
#include <span>

#include "common/ring/layout.h"
#include "common/spec/gpu_images.h"

namespace headrace::device {

// Says in each extent where its component lies in the GPU's slot, component after component, and returns the bytes
// used. What stays in the ring takes none. `extents` are those of the slot in host memory, in which the images are as
// they were decoded.
uint64_t PlaceInDeviceSlot(std::span<const GpuImages> images, std::span<ring::ComponentExtent> extents);

// The images that the component is; null if it is none.
const GpuImages* FindImages(std::span<const GpuImages> images, size_t component);

}  // namespace headrace::device
