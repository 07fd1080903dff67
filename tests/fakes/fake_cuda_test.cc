// The stand-in for the CUDA driver keeps the driver's order, and refuses what the driver refuses.
#include "tests/fakes/fake_cuda.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <numeric>
#include <vector>

#include "tests/common/gpu/gpu_fixture.h"

namespace headrace::gpu {
namespace {

constexpr size_t kBytes = 8192;

class FakeCudaTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    ASSERT_NE(context_, nullptr);
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
    GpuTest::TearDown();
  }

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

// Memory that is mapped by hand, and shared.
class FakeCudaMappingTest : public FakeCudaTest {
 protected:
  static constexpr size_t kUnit = 2 << 20;

  void SetUp() override {
    FakeCudaTest::SetUp();
    properties_.handle_types = kMemAsDescriptor;
    ASSERT_EQ(driver_->mem_create(&handle_, kUnit, &properties_, 0), kSuccess);
    ASSERT_EQ(driver_->mem_address_reserve(&address_, kUnit, 0, 0, 0), kSuccess);
  }
  void TearDown() override {
    EXPECT_EQ(driver_->mem_address_free(address_, kUnit), kSuccess);
    FakeCudaTest::TearDown();
  }
  Error Copy() { return driver_->memcpy_htod_async(address_, host_, kBytes, one_); }

  MemProperties properties_;
  MemHandle handle_ = 0;
  DevicePtr address_ = 0;
  const MemAccess access_{{}, kMemReadWrite};
};

TEST_F(FakeCudaMappingTest, TakesTheStepsInTheirOrderOnly) {
  EXPECT_EQ(Copy(), kErrorInvalidValue) << "nothing is mapped";
  EXPECT_EQ(driver_->mem_set_access(address_, kUnit, &access_, 1), kErrorInvalidValue);
  EXPECT_EQ(driver_->mem_unmap(address_, kUnit), kErrorInvalidValue);
  ASSERT_EQ(driver_->mem_map(address_, kUnit, 0, handle_, 0), kSuccess);
  EXPECT_EQ(Copy(), kErrorInvalidValue) << "nobody may access it";
  EXPECT_EQ(driver_->mem_map(address_, kUnit, 0, handle_, 0), kErrorInvalidValue) << "twice";
  EXPECT_EQ(driver_->mem_address_free(address_, kUnit), kErrorInvalidValue) << "while it is mapped";
  ASSERT_EQ(driver_->mem_set_access(address_, kUnit, &access_, 1), kSuccess);
  ASSERT_EQ(driver_->mem_release(handle_), kSuccess);
  EXPECT_EQ(Copy(), kSuccess) << "the mapping keeps the memory";
  ASSERT_EQ(driver_->stream_synchronize(one_), kSuccess);
  EXPECT_EQ(driver_->mem_release(handle_), kErrorInvalidValue) << "twice";
  EXPECT_EQ(driver_->mem_map(address_, kUnit, 0, handle_, 0), kErrorInvalidValue) << "after its release";
  ASSERT_EQ(driver_->mem_unmap(address_, kUnit), kSuccess);
  EXPECT_EQ(Copy(), kErrorInvalidValue) << "after it was unmapped";
}

TEST_F(FakeCudaMappingTest, RefusesWhatIsOffTheGranularity) {
  size_t unit = 0;
  ASSERT_EQ(driver_->mem_get_allocation_granularity(&unit, &properties_, kGranularityRecommended), kSuccess);
  EXPECT_EQ(unit, kUnit);
  MemHandle handle = 0;
  DevicePtr address = 0;
  EXPECT_EQ(driver_->mem_create(&handle, kUnit + 4096, &properties_, 0), kErrorInvalidValue);
  EXPECT_EQ(driver_->mem_address_reserve(&address, kUnit / 2, 0, 0, 0), kErrorInvalidValue);
  ASSERT_EQ(driver_->mem_release(handle_), kSuccess);
}

TEST_F(FakeCudaMappingTest, ExportsWhatWasMadeForIt) {
  MemHandle own = 0;
  int fd = -1;
  ASSERT_EQ(driver_->mem_create(&own, kUnit, std::make_unique<MemProperties>().get(), 0), kSuccess);
  EXPECT_EQ(driver_->mem_export(&fd, own, kMemAsDescriptor, 0), kErrorInvalidValue);
  EXPECT_EQ(driver_->mem_release(own), kSuccess);
  ASSERT_EQ(driver_->mem_export(&fd, handle_, kMemAsDescriptor, 0), kSuccess);
  EXPECT_EQ(driver_->mem_release(handle_), kSuccess);
  EXPECT_EQ(driver_->mem_export(&fd, handle_, kMemAsDescriptor, 0), kErrorInvalidValue) << "after its release";
  MemHandle imported = 0;
  auto* const descriptor = reinterpret_cast<void*>(static_cast<intptr_t>(fd));
  ASSERT_EQ(driver_->mem_import(&imported, descriptor, kMemAsDescriptor), kSuccess);
  EXPECT_EQ(driver_->mem_release(imported), kSuccess);
  close(fd);
  EXPECT_EQ(driver_->mem_import(&imported, descriptor, kMemAsDescriptor), kErrorInvalidValue) << "closed";
}

TEST_F(FakeCudaTest, StreamsWaitForValuesInRegisteredMemory) {
  DevicePtr word = 0;
  EXPECT_EQ(driver_->mem_host_get_device_pointer(&word, host_, 0), kErrorInvalidValue) << "not registered";
  EXPECT_EQ(driver_->stream_wait_value32(one_, reinterpret_cast<DevicePtr>(host_), 0, kWaitValueGeq),
            kErrorInvalidValue);
  std::memset(host_, 0, kBytes);
  ASSERT_EQ(driver_->mem_host_register(host_, kBytes, kMemHostRegisterDeviceMap), kSuccess);
  ASSERT_EQ(driver_->mem_host_get_device_pointer(&word, host_, 0), kSuccess);
  std::atomic<bool> ran = false;
  const auto run = [](void* flag) { static_cast<std::atomic<bool>*>(flag)->store(true); };
  ASSERT_EQ(driver_->stream_wait_value32(one_, word + 8, 5, kWaitValueGeq), kSuccess);
  ASSERT_EQ(cuLaunchHostFunc(one_, run, &ran), kSuccess);
  ASSERT_EQ(driver_->stream_write_value32(other_, word + 8, 4, kWriteValueDefault), kSuccess);
  ASSERT_EQ(driver_->stream_synchronize(other_), kSuccess);
  EXPECT_FALSE(ran);
  ASSERT_EQ(driver_->stream_write_value32(other_, word + 8, 6, kWriteValueDefault), kSuccess);
  ASSERT_EQ(driver_->stream_synchronize(one_), kSuccess);
  EXPECT_TRUE(ran);
  ASSERT_EQ(driver_->mem_host_unregister(host_), kSuccess);
  EXPECT_EQ(driver_->stream_write_value32(other_, word + 8, 7, kWriteValueDefault), kErrorInvalidValue);
}

}  // namespace
}  // namespace headrace::gpu
