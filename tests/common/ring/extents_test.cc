// Where the components of a batch lie, as the client takes it from a loader, and what it refuses.
#include <gmock/gmock.h>

#include "tests/common/ring/ring_fixture.h"

namespace headrace::ring {
namespace {

using testing::HasSubstr;

// Publishes one batch of one component and reads it.
class ExtentTest : public RingTest {
 protected:
  Status Deliver(const ComponentExtent& extent) {
    RingGeometry geometry = Geometry(2, 64);
    geometry.device_slot_bytes = device_slot_bytes_;
    const auto writer = std::move(*RingWriter::Open(path(), geometry));
    const auto reader = OpenReader(*writer);
    reader->StartIteration();
    std::atomic<bool> stop{false};
    EXPECT_TRUE(writer->Reserve(stop).ok());
    writer->Publish(SlotDescriptor{}, {&extent, 1});
    const Status status = reader->Next(0, 0, &view_).status();
    if (status.ok()) read_.assign(view_.extents.begin(), view_.extents.end());
    std::filesystem::remove(path());
    return status;
  }
  static constexpr uint64_t kStride = 4096;
  uint64_t device_slot_bytes_ = 0;
  SlotView view_;
  std::vector<ComponentExtent> read_;
};

TEST_F(ExtentTest, RowSplitsComeWithTheValues) {
  const ComponentExtent ragged{0, 40, 3, {2, -1, 5}, 64};
  ASSERT_TRUE(Deliver(ragged).ok());
  EXPECT_EQ(read_[0].splits_offset, 64u);
  EXPECT_EQ(NumSplits(read_[0]), 3u) << "dims before the ragged one alone have rows";
  const ComponentExtent strings{128, 0, 2, {3, 4}, 64};
  ASSERT_TRUE(Deliver(strings).ok());
  EXPECT_EQ(NumSplits(read_[0]), 13u);
  EXPECT_EQ(NumSplits(ComponentExtent{0, 5, 0, {}, 64}), 2u) << "one string";
  EXPECT_EQ(NumSplits(ComponentExtent{0, 0, 2, {0, -1}, 64}), 1u) << "no rows";
}

TEST_F(ExtentTest, RowSplitsMayFillTheSlot) {
  const int64_t rows = (kStride - 64) / 8 - 1;
  EXPECT_TRUE(Deliver({0, 64, 1, {rows}, 64}).ok());
  EXPECT_EQ(Deliver({0, 64, 1, {rows + 1}, 64}).code(), Code::kCorrupt);
}

TEST_F(ExtentTest, WhatIsOutsideTheSlotIsRefused) {
  constexpr int64_t kMany = int64_t{1} << 62;
  for (const ComponentExtent& bad :
       {ComponentExtent{64, kStride, 0, {}}, ComponentExtent{8, 8, 0, {}}, ComponentExtent{0, 8, kMaxDims + 1, {}},
        ComponentExtent{~uint64_t{63}, 64, 0, {}}, ComponentExtent{0, 8, 2, {2, -1}, 65},
        ComponentExtent{0, 8, 2, {2, -1}, kStride}, ComponentExtent{0, 8, 2, {2, -1}, kStride + 64},
        ComponentExtent{0, 8, 2, {2, -1}, ~uint64_t{63}}, ComponentExtent{0, 8, 1, {-2}, 64},
        ComponentExtent{0, 8, 1, {kMany}, 64}, ComponentExtent{0, 8, 2, {kMany, 4}, 64},
        ComponentExtent{0, 8, 1, {INT64_MAX}, 64}}) {
    const Status status = Deliver(bad);
    EXPECT_EQ(status.code(), Code::kCorrupt) << bad.offset << " " << bad.splits_offset << " " << bad.dims[0];
    EXPECT_THAT(status.message(), HasSubstr("ring: batch 0, component 0: " + std::to_string(bad.bytes) + " bytes at"));
  }
}

TEST_F(ExtentTest, WhatIsOutsideTheGpusSlotIsRefused) {
  ComponentExtent extent{0, 64, 1, {64}};
  extent.device_bytes = 128;
  EXPECT_THAT(Deliver(extent).message(), HasSubstr("128 bytes at 0 do not fit a GPU's slot of 0"));
  device_slot_bytes_ = 2 * kStride;
  EXPECT_TRUE(Deliver(extent).ok());
  EXPECT_EQ(read_[0].device_bytes, 128u);
  extent.device_offset = 2 * kStride - 64;
  EXPECT_EQ(Deliver(extent).code(), Code::kCorrupt);
  extent.device_offset = ~uint64_t{63};
  EXPECT_EQ(Deliver(extent).code(), Code::kCorrupt);
  extent.device_offset = 2 * kStride - 128;
  EXPECT_TRUE(Deliver(extent).ok());
}

}  // namespace
}  // namespace headrace::ring
