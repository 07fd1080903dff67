// Where components lie in a GPU's slot that is laid out by itself.
#include "sidecar/device/device_layout.h"

#include <gtest/gtest.h>

#include "tests/sidecar/device/program_images.h"

namespace headrace::device {
namespace {

TEST(DeviceLayout, ImagesTakeWhatTheyBecomeAndTheOthersWhatTheyTook) {
  GpuImages images;
  images.component = 1;
  images.program = Photographs(10, 3, DType::kFloat32, DType::kFloat16);
  ring::ComponentExtent extents[] = {
      {0, 40, 1, {5}},
      {64, 150, 4, {5, 3, 2, 5}},
      {256, 80, 2, {5, -1}, /*splits_offset=*/384},  // ragged: stays in the ring
      {512, 20, 1, {5}},
  };
  EXPECT_EQ(PlaceInDeviceSlot({&images, 1}, extents), 384U + 20);
  EXPECT_EQ(extents[0].device_offset, 0U);
  EXPECT_EQ(extents[0].device_bytes, 40U);
  EXPECT_EQ(extents[1].device_offset, 64U);
  EXPECT_EQ(extents[1].device_bytes, 300U);
  EXPECT_EQ(extents[2].device_bytes, 0U);
  EXPECT_EQ(extents[3].device_offset, 384U);
  EXPECT_EQ(extents[3].device_bytes, 20U);
}

TEST(DeviceLayout, NothingTakesNothing) {
  GpuImages images;
  images.program = Photographs(10, 3, DType::kFloat32, DType::kFloat32);
  ring::ComponentExtent none{128, 0, 4, {0, 3, 2, 5}};
  EXPECT_EQ(PlaceInDeviceSlot({&images, 1}, {&none, 1}), 0U);
  EXPECT_EQ(PlaceInDeviceSlot({}, {}), 0U);
}

}  // namespace
}  // namespace headrace::device
