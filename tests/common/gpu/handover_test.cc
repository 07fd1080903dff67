// Slots handed to and fro in the order of streams, against the stand-in driver.
#include "common/gpu/handover.h"

#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>

#include "tests/common/gpu/gpu_fixture.h"

namespace headrace::gpu {
namespace {

using testing::HasSubstr;

class HandoverTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    loaders_ = std::move(*Handover::Create(context_.get(), 3));
    trainers_ = std::move(*Handover::Import(context_.get(), loaders_->fd(), 3));
    ASSERT_EQ(driver_->stream_create(&filling_, kStreamNonBlocking), kSuccess);
    ASSERT_EQ(driver_->stream_create(&training_, kStreamNonBlocking), kSuccess);
  }
  void TearDown() override {
    EXPECT_EQ(driver_->stream_destroy(filling_), kSuccess);
    EXPECT_EQ(driver_->stream_destroy(training_), kSuccess);
    loaders_.reset();
    trainers_.reset();
    EXPECT_EQ(State().refusals, before_.refusals) << FakeCudaLastRefusal();
    GpuTest::TearDown();
  }

  std::unique_ptr<Handover> loaders_, trainers_;
  Stream filling_ = nullptr, training_ = nullptr;
};

TEST_F(HandoverTest, AFilledSlotIsDrainedForBoth) {
  EXPECT_TRUE(trainers_->IsDrained(1)) << "a new one";
  loaders_->MarkFilled(1);
  EXPECT_FALSE(trainers_->IsDrained(1));
  EXPECT_FALSE(loaders_->IsDrained(1));
  EXPECT_TRUE(loaders_->IsDrained(0) && loaders_->IsDrained(2)) << "its neighbours are not";
  trainers_->Drain(1);
  EXPECT_TRUE(loaders_->IsDrained(1));
}

TEST_F(HandoverTest, TheFillingStreamWaitsForTheTrainingOne) {
  std::atomic<bool> end = false;
  std::atomic<bool> filled = false;
  const auto kernel = [](void* flag) { static_cast<std::atomic<bool>*>(flag)->wait(false); };
  const auto fill = [](void* flag) { static_cast<std::atomic<bool>*>(flag)->store(true); };
  for (int round = 0; round < 50; ++round) {
    end = filled = false;
    loaders_->MarkFilled(2);
    ASSERT_EQ(cuLaunchHostFunc(training_, kernel, &end), kSuccess);
    ASSERT_TRUE(trainers_->DrainBehind(2, training_).ok());
    ASSERT_TRUE(loaders_->AwaitDrained(2, filling_).ok());
    ASSERT_EQ(cuLaunchHostFunc(filling_, fill, &filled), kSuccess);
    EXPECT_FALSE(filled) << "the kernel still runs";
    end = true;
    end.notify_all();
    ASSERT_EQ(driver_->stream_synchronize(filling_), kSuccess);
    EXPECT_TRUE(filled);
  }
}

TEST_F(HandoverTest, FewerCountersThanSlotsAreRefused) {
  EXPECT_THAT(Handover::Import(context_.get(), loaders_->fd(), 65).status().message(),
              HasSubstr("a device ring's counters have 4096 bytes, its 65 slots need 4160"));
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  EXPECT_EQ(Handover::Import(context_.get(), pipes[0], 1).status().code(), Code::kCorrupt);
  close(pipes[0]);
  close(pipes[1]);
}

}  // namespace
}  // namespace headrace::gpu
