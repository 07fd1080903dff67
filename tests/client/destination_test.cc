// Where batches go in a process without a CUDA driver.
#include "client/destination.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

namespace headrace::client {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class DestinationTest : public testing::Test {
 protected:
  DestinationTest() {
    setenv("HEADRACE_LIBCUDA", "/nowhere/libcuda.so.1", 1);
    policy_.takes_device = true;
    reply_.topology.replicas_per_worker = 2;
  }

  ConnectPolicy policy_;
  ring::HandshakeReply reply_;
};

TEST_F(DestinationTest, AutoIsHostAndSaysWhy) {
  const auto chosen = ChooseDestinations(policy_, reply_);
  ASSERT_TRUE(chosen.ok()) << chosen.status().ToString();
  ASSERT_EQ(chosen->size(), 2U);
  for (const Destination& destination : *chosen) {
    EXPECT_FALSE(destination.gpu);
    EXPECT_THAT(destination.reason, StartsWith("Host: no CUDA driver in this process (/nowhere/libcuda.so.1"));
  }
}

TEST_F(DestinationTest, PinnedWithoutAGpuIsAnError) {
  reply_.memory = MemoryKind::kPinned;
  const auto chosen = ChooseDestinations(policy_, reply_);
  EXPECT_EQ(chosen.status().code(), Code::kNotFound);
  EXPECT_THAT(chosen.status().message(),
              AllOf(StartsWith("spec.delivery.memory is Pinned, and the trainer's process has no GPU"),
                    HasSubstr("nvidia.com/gpu"), HasSubstr("spec.delivery.memory: Host")));
}

TEST_F(DestinationTest, TrainerMayTakeHostMemoryAlone) {
  reply_.memory = MemoryKind::kPinned;
  policy_.takes_device = false;
  const auto chosen = ChooseDestinations(policy_, reply_);
  ASSERT_TRUE(chosen.ok()) << chosen.status().ToString();
  EXPECT_EQ((*chosen)[0].reason, "Host: the trainer takes host memory only");
}

TEST_F(DestinationTest, HostMemoryAloneIsRefusedWhereTheLoaderSaysSo) {
  reply_.memory = MemoryKind::kDevice;
  reply_.device_only = "host memory has no images: take GPU memory";
  policy_.takes_device = false;
  const auto chosen = ChooseDestinations(policy_, reply_);
  EXPECT_EQ(chosen.status().code(), Code::kInvalidArgument);
  EXPECT_EQ(chosen.status().message(), reply_.device_only);
}

}  // namespace
}  // namespace headrace::client
