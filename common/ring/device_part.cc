#include "common/ring/device_part.h"

#include <algorithm>

namespace headrace::ring {
namespace {

// Components nearer than this are copied in one: what lies between them costs less than another copy.
constexpr uint64_t kGapBytes = 16384;

}  // namespace

std::vector<ByteRange> DeviceRanges(std::span<const ComponentExtent> extents) {
  std::vector<ByteRange> ranges;
  for (const ComponentExtent& extent : extents) {
    if (GoesToDevice(extent) && extent.bytes > 0) ranges.push_back({extent.offset, extent.offset + extent.bytes});
  }
  std::sort(ranges.begin(), ranges.end(), [](ByteRange a, ByteRange b) { return a.begin < b.begin; });
  std::vector<ByteRange> merged;
  for (const ByteRange& range : ranges) {
    if (!merged.empty() && range.begin <= merged.back().end + kGapBytes) {
      merged.back().end = std::max(merged.back().end, range.end);
    } else {
      merged.push_back(range);
    }
  }
  return merged;
}

}  // namespace headrace::ring
