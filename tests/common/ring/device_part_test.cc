// What of a batch goes to a GPU.
#include "common/ring/device_part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headrace::ring {
namespace {

using Ranges = std::vector<std::pair<uint64_t, uint64_t>>;

Ranges Of(const std::vector<ComponentExtent>& extents) {
  Ranges ranges;
  for (const ByteRange& range : DeviceRanges(extents)) ranges.emplace_back(range.begin, range.end);
  return ranges;
}

ComponentExtent Dense(uint64_t offset, uint64_t bytes) { return {offset, bytes, 1, {1}}; }

TEST(DevicePart, NeighboursAreOneRange) {
  EXPECT_EQ(Of({Dense(0, 100), Dense(128, 50)}), (Ranges{{0, 178}}));
  EXPECT_EQ(Of({Dense(128, 50), Dense(0, 100)}), (Ranges{{0, 178}})) << "in whatever order";
}

TEST(DevicePart, WhatIsFarApartIsNot) {
  EXPECT_EQ(Of({Dense(0, 64), Dense(1 << 20, 64)}), (Ranges{{0, 64}, {1 << 20, (1 << 20) + 64}}));
}

TEST(DevicePart, LeavesOutWhatHasRowSplitsAndWhatIsEmpty) {
  ComponentExtent ragged = Dense(64, 1 << 20);
  ragged.splits_offset = 2 << 20;
  EXPECT_FALSE(GoesToDevice(ragged));
  EXPECT_EQ(Of({Dense(0, 64), ragged, Dense(4 << 20, 0)}), (Ranges{{0, 64}}));
  EXPECT_EQ(Of({}), Ranges{});
}

}  // namespace
}  // namespace headrace::ring
