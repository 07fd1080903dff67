#include "common/ring/geometry.h"

#include <cstring>
#include <string>

#include "common/spec/plan.h"

namespace headrace::ring {
namespace {

constexpr uint64_t kMinSlots =
    2;  // batch n - 1's descriptor is whole while n's is written, whenever the loader is killed
constexpr uint64_t kMaxSlots = 1u << 16;
constexpr uint64_t kMaxSlotBytes = 1ull << 40;

uint64_t RoundUp(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

Status Bad(const std::string& field, uint64_t value, const std::string& wanted) {
  return Corrupt("ring header: " + field + " is " + std::to_string(value) + ", want " + wanted);
}

}  // namespace

Result<Geometry> MakeGeometry(uint64_t slot_count, uint64_t slot_bytes, uint32_t component_count,
                              uint64_t device_slot_bytes) {
  if (slot_count < kMinSlots || slot_count > kMaxSlots) {
    return InvalidArgument("ring: slot_count is " + std::to_string(slot_count) + ", want " + std::to_string(kMinSlots) +
                           " to " + std::to_string(kMaxSlots));
  }
  if (slot_bytes > kMaxSlotBytes || device_slot_bytes > kMaxSlotBytes) {
    return InvalidArgument("ring: slot_bytes is " + std::to_string(slot_bytes) + ", on a GPU " +
                           std::to_string(device_slot_bytes) + ", want at most " + std::to_string(kMaxSlotBytes));
  }
  if (component_count > static_cast<uint32_t>(kMaxComponents)) {
    return InvalidArgument("ring: component_count is " + std::to_string(component_count) + ", want at most " +
                           std::to_string(kMaxComponents));
  }
  Geometry geometry;
  geometry.slot_count = slot_count;
  geometry.slot_stride = RoundUp(slot_bytes == 0 ? 1 : slot_bytes, kPageBytes);
  geometry.component_count = component_count;
  geometry.device_slot_stride = RoundUp(device_slot_bytes, kPageBytes);
  geometry.descriptor_offset = kPageBytes + RoundUp(slot_count * sizeof(uint32_t), 64);
  geometry.descriptor_stride = RoundUp(sizeof(SlotDescriptor) + component_count * sizeof(ComponentExtent), 64);
  geometry.data_offset = RoundUp(geometry.descriptor_offset + slot_count * geometry.descriptor_stride, kPageBytes);
  geometry.file_bytes = geometry.data_offset + slot_count * geometry.slot_stride;
  return geometry;
}

std::optional<uint64_t> NumSplits(const ComponentExtent& extent) {
  int64_t rows = 1;
  for (uint64_t d = 0; d < extent.ndim && extent.dims[d] != kUnknownDim; ++d) {
    if (extent.dims[d] < 0 || __builtin_mul_overflow(rows, extent.dims[d], &rows)) return {};
  }
  return static_cast<uint64_t>(rows) + 1;
}

bool SplitsAreInside(uint64_t slot_stride, const ComponentExtent& extent) {
  const std::optional<uint64_t> splits = NumSplits(extent);
  return splits && *splits <= slot_stride / sizeof(int64_t) &&
         IsInside(slot_stride, extent.splits_offset, *splits * sizeof(int64_t));
}

Status DoesNotFit(const ComponentExtent& extent, const Geometry& geometry) {
  if (!IsInside(geometry.device_slot_stride, extent.device_offset, extent.device_bytes)) {
    return Corrupt(std::to_string(extent.device_bytes) + " bytes at " + std::to_string(extent.device_offset) +
                   " do not fit a GPU's slot of " + std::to_string(geometry.device_slot_stride));
  }
  return Corrupt(std::to_string(extent.bytes) + " bytes at " + std::to_string(extent.offset) + ", in " +
                 std::to_string(extent.ndim) + " dimensions, with row splits at " +
                 std::to_string(extent.splits_offset) + ", do not fit a slot of " +
                 std::to_string(geometry.slot_stride));
}

Result<Geometry> CheckHeader(const uint8_t* base, size_t bytes) {
  if (bytes < kPageBytes) {
    return Corrupt("ring: the file has " + std::to_string(bytes) + " bytes, a header needs " +
                   std::to_string(kPageBytes));
  }
  const auto& header = *reinterpret_cast<const RingHeader*>(base);
  if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0)
    return Corrupt("ring: the file does not begin with HDRCRING");
  if (header.version != kLayoutVersion) return Bad("version", header.version, std::to_string(kLayoutVersion));
  if (std::memchr(header.plan_hash, 0, sizeof(header.plan_hash)) == nullptr) {
    return Corrupt("ring header: plan_hash does not end");
  }
  // The layout of a version is a function of four numbers, so everything else is compared and not believed.
  uint64_t slot_count = header.slot_count;
  uint64_t slot_stride = header.slot_stride;
  if (slot_stride == 0 || slot_stride % kPageBytes != 0) return Bad("slot_stride", slot_stride, "a multiple of 4096");
  uint64_t device_slot_stride = header.device_slot_stride;
  if (device_slot_stride % kPageBytes != 0) return Bad("device_slot_stride", device_slot_stride, "a multiple of 4096");
  auto expected = MakeGeometry(slot_count, slot_stride, header.component_count, device_slot_stride);
  if (!expected.ok()) return Corrupt("ring header: " + expected.status().message());
  const Geometry& want = *expected;
  if (header.descriptor_offset != want.descriptor_offset) {
    return Bad("descriptor_offset", header.descriptor_offset, std::to_string(want.descriptor_offset));
  }
  if (header.descriptor_stride != want.descriptor_stride) {
    return Bad("descriptor_stride", header.descriptor_stride, std::to_string(want.descriptor_stride));
  }
  if (header.data_offset != want.data_offset) {
    return Bad("data_offset", header.data_offset, std::to_string(want.data_offset));
  }
  if (header.file_bytes != want.file_bytes) {
    return Bad("file_bytes", header.file_bytes, std::to_string(want.file_bytes));
  }
  if (bytes != want.file_bytes)
    return Bad("file_bytes", header.file_bytes, "the file's size, " + std::to_string(bytes));
  uint64_t released = header.released.load(std::memory_order_acquire);
  uint64_t published = header.published.load(std::memory_order_acquire);
  if (published - released > slot_count) {
    return Bad("released", released,
               "at most published, " + std::to_string(published) + ", and at least that less slot_count, " +
                   std::to_string(slot_count));
  }
  return want;
}

}  // namespace headrace::ring
