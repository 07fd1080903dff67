// What of a batch goes to a GPU: the same rule for the client, which copies it from the ring, and for the loader. There
// it lies at the places that it has in its slot, unless slots in GPU memory are laid out by themselves.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/ring/layout.h"

namespace headrace::ring {

// Bytes of a slot.
struct ByteRange {
  uint64_t begin = 0;
  uint64_t end = 0;
};

// What has rows of different length stays in the ring: its row splits are for the CPU, and strings are, too.
inline bool GoesToDevice(const ComponentExtent& extent) { return extent.splits_offset == 0; }

// The component where it lies in the GPU's slot, if that is laid out by itself.
inline ComponentExtent InDeviceSlot(ComponentExtent extent) {
  if (!GoesToDevice(extent)) return extent;
  extent.offset = extent.device_offset;
  extent.bytes = extent.device_bytes;
  return extent;
}

// What is to be copied of a batch: as few ranges as make sense.
std::vector<ByteRange> DeviceRanges(std::span<const ComponentExtent> extents);

}  // namespace headrace::ring
