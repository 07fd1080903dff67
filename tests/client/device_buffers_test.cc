// Which buffer is filled next, against the stand-in driver.
#include "client/device_buffers.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "tests/common/gpu/gpu_fixture.h"

namespace headrace::client {
namespace {

constexpr size_t kBytes = 4096;

class DeviceBuffersTest : public gpu::GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    slot_ = static_cast<uint8_t*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    auto made = DeviceBuffers::Create({.ring = {slot_, kBytes}, .buffer_bytes = kBytes, .count = 2});
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    buffers_ = std::move(*made);
  }
  void TearDown() override {
    FakeCudaHoldCopies(0);
    buffers_.reset();
    munmap(slot_, kBytes);
    GpuTest::TearDown();
  }

  DeviceBuffers::Buffer* Take() {
    auto taken = buffers_->TryTake();
    EXPECT_TRUE(taken.ok()) << taken.status().ToString();
    return taken.ok() ? *taken : nullptr;
  }
  void Fill(DeviceBuffers::Buffer* buffer) {
    const ring::ByteRange all{0, kBytes};
    const Status filled = buffers_->Fill(*buffer, slot_, {&all, 1});
    EXPECT_TRUE(filled.ok()) << filled.ToString();
  }
  void AwaitFilled(DeviceBuffers::Buffer* buffer) {
    const Status filled = buffers_->AwaitFilled(*buffer);
    EXPECT_TRUE(filled.ok()) << filled.ToString();
  }

  uint8_t* slot_ = nullptr;
  std::unique_ptr<DeviceBuffers> buffers_;
};

// What was freed may still be used by a stream that the trainer's host is ahead of.
TEST_F(DeviceBuffersTest, EachIsUsedBeforeOneIsUsedAgain) {
  DeviceBuffers::Buffer* const first = Take();
  Fill(first);
  AwaitFilled(first);
  buffers_->GiveBack(first, {});
  DeviceBuffers::Buffer* const second = Take();
  EXPECT_NE(second, first);
  EXPECT_EQ(Take(), first);
  EXPECT_EQ(Take(), nullptr);
  buffers_->GiveBack(first, {});
  buffers_->GiveBack(second, {});
}

// Whoever waits for a copy must not wait for the one behind it.
TEST_F(DeviceBuffersTest, NoneIsFilledAgainBeforeItsCopyWasWaitedFor) {
  DeviceBuffers::Buffer* const first = Take();
  DeviceBuffers::Buffer* const second = Take();
  FakeCudaHoldCopies(1);
  Fill(first);
  buffers_->GiveBack(first, {});
  EXPECT_EQ(Take(), nullptr) << "its slot is still read";
  buffers_->GiveBack(second, {});
  EXPECT_EQ(Take(), second) << "though the other one was given back before";
  FakeCudaHoldCopies(0);
  AwaitFilled(first);
  EXPECT_EQ(Take(), first);
  buffers_->GiveBack(first, {});
  buffers_->GiveBack(second, {});
}

}  // namespace
}  // namespace headrace::client
