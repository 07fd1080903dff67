// The stand-in for the CUDA driver keeps the driver's order, and refuses what the driver refuses.
#include "tests/fakes/fake_cuda.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <numeric>
#include <vector>

#include "common/gpu/context.h"

namespace headrace::gpu {
namespace {

constexpr size_t kBytes = 8192;

class FakeCudaTest : public testing::Test {
 protected:
  void SetUp() override {
    const Result<const Driver*> opened = Driver::Open();
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    driver_ = *opened;
    auto context = PrimaryContext::Retain(driver_, 0);
    ASSERT_TRUE(context.ok()) << context.status().ToString();
    context_ = std::move(*context);
    current_.emplace(*context_);
    ASSERT_EQ(driver_->stream_create(&one_, kStreamNonBlocking), kSuccess);
    ASSERT_EQ(driver_->stream_create(&other_, 0), kSuccess);
    ASSERT_EQ(driver_->event_create(&event_, kEventDisableTiming), kSuccess);
    ASSERT_EQ(driver_->mem_alloc(&memory_, kBytes), kSuccess);
    host_ = static_cast<uint8_t*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    std::iota(host_, host_ + kBytes, uint8_t{0});
  }
  void TearDown() override {
    FakeCudaHoldCopies(0);
    EXPECT_EQ(driver_->event_destroy(event_), kSuccess);
    EXPECT_EQ(driver_->stream_destroy(one_), kSuccess);
    EXPECT_EQ(driver_->stream_destroy(other_), kSuccess);
    EXPECT_EQ(driver_->mem_free(memory_), kSuccess);
    munmap(host_, kBytes);
    current_.reset();
    context_.reset();
    const FakeCudaState left = State();
    EXPECT_EQ(left.contexts + left.streams + left.events + left.registrations + left.device_bytes, 0);
  }

  static FakeCudaState State() {
    FakeCudaState state;
    FakeCudaGetState(&state);
    return state;
  }

  const Driver* driver_ = nullptr;
  std::unique_ptr<PrimaryContext> context_;
  std::optional<PrimaryContext::Current> current_;
  Stream one_ = nullptr, other_ = nullptr;
  Event event_ = nullptr;
  DevicePtr memory_ = 0;
  uint8_t* host_ = nullptr;
};

TEST_F(FakeCudaTest, CopiesThereAndBack) {
  std::vector<uint8_t> back(kBytes);
  ASSERT_EQ(driver_->memcpy_htod_async(memory_, host_, kBytes, one_), kSuccess);
  ASSERT_EQ(driver_->memcpy_dtoh_async(back.data(), memory_, kBytes, one_), kSuccess);
  ASSERT_EQ(driver_->stream_synchronize(one_), kSuccess);
  EXPECT_EQ(back, std::vector<uint8_t>(host_, host_ + kBytes));
}

TEST_F(FakeCudaTest, StreamsWaitForEventsAsTheyWereRecorded) {
  FakeCudaHoldCopies(1);
  ASSERT_EQ(driver_->stream_wait_event(other_, event_, 0), kSuccess) << "one that was never recorded is over";
  ASSERT_EQ(driver_->stream_synchronize(other_), kSuccess);
  ASSERT_EQ(driver_->memcpy_htod_async(memory_, host_, kBytes, one_), kSuccess);
  ASSERT_EQ(driver_->event_record(event_, one_), kSuccess);
  ASSERT_EQ(driver_->stream_wait_event(other_, event_, 0), kSuccess);
  std::atomic<bool> ran = false;
  const auto run = [](void* flag) { static_cast<std::atomic<bool>*>(flag)->store(true); };
  ASSERT_EQ(cuLaunchHostFunc(other_, run, &ran), kSuccess);
  EXPECT_FALSE(ran) << "the copy before it is held";
  FakeCudaHoldCopies(0);
  ASSERT_EQ(driver_->stream_synchronize(other_), kSuccess);
  EXPECT_TRUE(ran);
  ASSERT_EQ(driver_->event_synchronize(event_), kSuccess);
}

TEST_F(FakeCudaTest, KnowsPageableMemory) {
  const FakeCudaState before = State();
  ASSERT_EQ(driver_->memcpy_htod_async(memory_, host_, kBytes, one_), kSuccess);
  ASSERT_EQ(driver_->stream_synchronize(one_), kSuccess);
  ASSERT_EQ(driver_->mem_host_register(host_, kBytes, kMemHostRegisterPortable), kSuccess);
  ASSERT_EQ(driver_->memcpy_htod_async(memory_, host_, kBytes, one_), kSuccess);
  ASSERT_EQ(driver_->stream_synchronize(one_), kSuccess);
  ASSERT_EQ(driver_->mem_host_unregister(host_), kSuccess);
  EXPECT_EQ(State().copies_to_device - before.copies_to_device, 2);
  EXPECT_EQ(State().pageable_copies - before.pageable_copies, 1);
}

TEST_F(FakeCudaTest, RefusesRegistrationsThatTheDriverRefuses) {
  EXPECT_EQ(driver_->mem_host_register(host_ + 8, 4096, 0), kErrorInvalidValue) << "not whole pages";
  EXPECT_EQ(driver_->mem_host_register(host_, 0, 0), kErrorInvalidValue);
  EXPECT_EQ(driver_->mem_host_unregister(host_), kErrorHostMemoryNotRegistered);
  ASSERT_EQ(driver_->mem_host_register(host_, kBytes, 0), kSuccess);
  EXPECT_EQ(driver_->mem_host_register(host_ + 4096, 4096, 0), kErrorHostMemoryAlreadyRegistered);
  EXPECT_EQ(driver_->mem_host_unregister(host_), kSuccess);
  void* const gone = mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(gone, kBytes);
  EXPECT_EQ(driver_->mem_host_register(gone, kBytes, 0), kErrorInvalidValue) << "not mapped";
}

TEST_F(FakeCudaTest, RefusesMemoryThatIsNotThere) {
  EXPECT_EQ(driver_->memcpy_htod_async(memory_ + 1, host_, kBytes, one_), kErrorInvalidValue) << "beyond its end";
  EXPECT_EQ(driver_->memcpy_dtoh_async(host_, reinterpret_cast<DevicePtr>(host_), 1, one_), kErrorInvalidValue);
  DevicePtr freed = 0;
  ASSERT_EQ(driver_->mem_alloc(&freed, 64), kSuccess);
  ASSERT_EQ(driver_->mem_free(freed), kSuccess);
  EXPECT_EQ(driver_->mem_free(freed), kErrorInvalidValue);
  EXPECT_EQ(driver_->memcpy_htod_async(freed, host_, 64, one_), kErrorInvalidValue);
}

TEST_F(FakeCudaTest, NoticesMemoryFreedBeforeItsCopy) {
  DevicePtr freed = 0;
  ASSERT_EQ(driver_->mem_alloc(&freed, 64), kSuccess);
  FakeCudaHoldCopies(1);
  ASSERT_EQ(driver_->memcpy_htod_async(freed, host_, 64, one_), kSuccess);
  ASSERT_EQ(driver_->mem_free(freed), kSuccess);
  const int64_t before = State().refusals;
  FakeCudaHoldCopies(0);
  ASSERT_EQ(driver_->stream_synchronize(one_), kSuccess);
  EXPECT_EQ(State().refusals, before + 1);
  EXPECT_STREQ(FakeCudaLastRefusal(), "a copy found its device memory freed or unmapped");
}

TEST_F(FakeCudaTest, RefusesCallsWithoutAContextAndHandlesThatAreGone) {
  Stream gone = nullptr;
  ASSERT_EQ(driver_->stream_create(&gone, 0), kSuccess);
  ASSERT_EQ(driver_->stream_destroy(gone), kSuccess);
  EXPECT_EQ(driver_->event_record(event_, gone), kErrorInvalidHandle);
  EXPECT_EQ(driver_->stream_wait_event(gone, event_, 0), kErrorInvalidHandle);
  Device device = 0;
  EXPECT_EQ(driver_->device_get(&device, 2), kErrorInvalidDevice);
  current_.reset();
  DevicePtr memory = 0;
  EXPECT_EQ(driver_->mem_alloc(&memory, 64), kErrorInvalidContext);
  current_.emplace(*context_);
}

}  // namespace
}  // namespace headrace::gpu
