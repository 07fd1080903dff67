// Memory of a GPU that two holders map, against the stand-in driver.
#include "common/gpu/shared_memory.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <vector>

#include "tests/common/gpu/gpu_fixture.h"

namespace headrace::gpu {
namespace {

using testing::HasSubstr;

using SharedMemoryTest = GpuTest;

TEST_F(SharedMemoryTest, WhatOneWritesTheOtherReads) {
  auto made = SharedMemory::Create(context_.get(), 5000);
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  auto mapped = SharedMemory::Import(context_.get(), (*made)->fd(), 5000);
  ASSERT_TRUE(mapped.ok()) << mapped.status().ToString();
  EXPECT_NE((*made)->address(), (*mapped)->address());
  EXPECT_EQ((*mapped)->fd(), -1);
  const std::vector<uint8_t> bytes(5000, 42);
  std::vector<uint8_t> back(5000);
  ASSERT_EQ(driver_->memcpy_htod_async((*made)->address(), bytes.data(), 5000, nullptr), kSuccess);
  ASSERT_EQ(driver_->memcpy_dtoh_async(back.data(), (*mapped)->address(), 5000, nullptr), kSuccess);
  ASSERT_EQ(driver_->stream_synchronize(nullptr), kSuccess);
  EXPECT_EQ(back, bytes);
  EXPECT_EQ(State().refusals, before_.refusals) << FakeCudaLastRefusal();
}

TEST_F(SharedMemoryTest, LivesUntilTheLastLetsGo) {
  auto made = std::move(*SharedMemory::Create(context_.get(), 1));
  auto mapped = std::move(*SharedMemory::Import(context_.get(), made->fd(), 1));
  made.reset();
  uint8_t byte = 0;
  EXPECT_EQ(driver_->memcpy_dtoh_async(&byte, mapped->address(), 1, nullptr), kSuccess);
  ASSERT_EQ(driver_->stream_synchronize(nullptr), kSuccess);
  EXPECT_EQ(byte, 0xA5);
  mapped.reset();
  EXPECT_EQ(State().device_bytes, 0);
}

TEST_F(SharedMemoryTest, WhatIsNoSuchMemoryIsRefusedAndLeavesNothing) {
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  const Status no_memory = SharedMemory::Import(context_.get(), pipes[0], 1).status();
  EXPECT_THAT(no_memory.message(), HasSubstr("cuMemImportFromShareableHandle"));
  close(pipes[0]);
  close(pipes[1]);
  const auto made = std::move(*SharedMemory::Create(context_.get(), 1));
  EXPECT_THAT(SharedMemory::Import(context_.get(), made->fd(), 100 << 20).status().message(), HasSubstr("cuMemMap"))
      << "larger than it is";
  auto other = PrimaryContext::Retain(driver_, 1);
  ASSERT_TRUE(other.ok());
  EXPECT_THAT(SharedMemory::Import(other->get(), made->fd(), 1).status().message(), HasSubstr("cuMemSetAccess"))
      << "another GPU's";
  EXPECT_EQ(State().device_bytes, 2 << 20);
}

}  // namespace
}  // namespace headrace::gpu
