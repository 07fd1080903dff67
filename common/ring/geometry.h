// Where things lie in a ring, once its header has been checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "common/base/status.h"
#include "common/ring/layout.h"

namespace headrace::ring {

// A private copy of the header's geometry: what the other process writes later cannot move anything.
struct Geometry {
  uint64_t slot_count = 0;
  uint64_t slot_stride = 0;
  uint64_t descriptor_offset = 0;
  uint64_t descriptor_stride = 0;
  uint64_t data_offset = 0;
  uint64_t file_bytes = 0;
  uint32_t component_count = 0;
  uint64_t device_slot_stride = 0;  // RingHeader's

  // Of the batch with this number.
  SlotDescriptor* descriptor(uint8_t* base, uint64_t batch) const {
    return reinterpret_cast<SlotDescriptor*>(base + descriptor_offset + batch % slot_count * descriptor_stride);
  }
  ComponentExtent* extents(uint8_t* base, uint64_t batch) const {
    return reinterpret_cast<ComponentExtent*>(descriptor(base, batch) + 1);
  }
  // The entry of free_slots for the slot that was given back as the `count`-th, from 0.
  uint32_t* free_slot(uint8_t* base, uint64_t count) const {
    return reinterpret_cast<uint32_t*>(base + kPageBytes) + count % slot_count;
  }
  // From slot to slot of this ring in GPU memory.
  uint64_t device_stride() const { return device_slot_stride != 0 ? device_slot_stride : slot_stride; }
  uint8_t* slot(uint8_t* base, uint64_t index) const { return base + data_offset + index * slot_stride; }
  bool operator==(const Geometry&) const = default;
};

// The geometry of a new ring. `device_slot_bytes`: of slots in GPU memory that are laid out by themselves, else 0.
// Errors: InvalidArgument naming the number that is out of bounds.
Result<Geometry> MakeGeometry(uint64_t slot_count, uint64_t slot_bytes, uint32_t component_count,
                              uint64_t device_slot_bytes);

// The number of row_splits of a component of variable length: one for each row, and one. Nothing if its dims are of no
// such component.
std::optional<uint64_t> NumSplits(const ComponentExtent& extent);

// Whether these bytes lie within a slot, and are aligned as tensors are.
inline bool IsInside(uint64_t slot_stride, uint64_t offset, uint64_t bytes) {
  return offset % kTensorAlign == 0 && offset <= slot_stride && bytes <= slot_stride - offset;
}
// The same of the row_splits of a component that has some.
bool SplitsAreInside(uint64_t slot_stride, const ComponentExtent& extent);
// Whether a component that another process wrote lies within a slot, here and in GPU memory. Its dims are looked at
// only where row_splits depend on them, and no memory of the slot is.
inline bool FitsSlot(const ComponentExtent& extent, const Geometry& geometry) {
  return extent.ndim <= kMaxDims && IsInside(geometry.slot_stride, extent.offset, extent.bytes) &&
         IsInside(geometry.device_slot_stride, extent.device_offset, extent.device_bytes) &&
         (extent.splits_offset == 0 || SplitsAreInside(geometry.slot_stride, extent));
}
// Corrupt, of a component that does not.
[[gnu::cold]] Status DoesNotFit(const ComponentExtent& extent, const Geometry& geometry);

// Checks `bytes` foreign bytes at `base` for a ring: magic, version, geometry, counters. Never reads past `bytes`.
// REQUIRES: base is aligned to pages. Errors: Corrupt naming the field and its value.
Result<Geometry> CheckHeader(const uint8_t* base, size_t bytes);

}  // namespace headrace::ring
