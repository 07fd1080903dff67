// The stand-in for the CUDA driver keeps the driver's order, and refuses what the driver refuses.
#include "tests/fakes/fake_cuda.h"

#include <gmock/gmock.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "sidecar/device/image_tile.h"
#include "tests/common/gpu/gpu_fixture.h"
#include "tests/sidecar/device/program_images.h"

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

TEST_F(FakeCudaTest, RefusesToLockFilesOfADisk) {
  std::string path = testing::TempDir() + "headrace-disk-XXXXXX";
  const int file = mkstemp(path.data());
  ASSERT_GE(file, 0) << path;
  struct statfs of {};
  ASSERT_EQ(fstatfs(file, &of), 0);
  ASSERT_EQ(ftruncate(file, kBytes), 0);
  void* const shared = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  const Status refused = driver_->RegisterRing(shared, kBytes);
  if (refused.ok()) driver_->mem_host_unregister(shared);
  munmap(shared, kBytes);
  close(file);
  unlink(path.c_str());
  if (of.f_type == TMPFS_MAGIC) GTEST_SKIP() << testing::TempDir() << " is in memory here";
  EXPECT_THAT(refused.ToString(), testing::HasSubstr("medium: Memory"));
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

// Code as nvcc makes it begins so; no more of it is looked at.
constexpr uint32_t kCode[] = {0xBA55ED50, 0};

class FakeCudaKernelTest : public FakeCudaTest {
 protected:
  static constexpr int64_t kImages = 2;

  void SetUp() override {
    FakeCudaTest::SetUp();
    ASSERT_EQ(driver_->module_load_data(&module_, kCode), kSuccess);
    ASSERT_EQ(driver_->module_get_function(&quick_, module_, device::kThreeChannelsKernel), kSuccess);
    ASSERT_EQ(driver_->module_get_function(&any_, module_, device::kAnyKernel), kSuccess);
    ASSERT_EQ(driver_->mem_alloc(&out_, kBytes), kSuccess);
  }
  void TearDown() override {
    EXPECT_EQ(driver_->mem_free(out_), kSuccess);
    EXPECT_EQ(driver_->module_unload(module_), kSuccess);
    EXPECT_EQ(State().modules, 0);
    FakeCudaTest::TearDown();
  }
  Error Launch(Function function, unsigned blocks, unsigned threads) {
    void* arguments[] = {&program_, &memory_, &out_};
    return driver_->launch_kernel(function, blocks, 1, 1, threads, 1, 1, 0, one_, arguments, nullptr);
  }

  Module module_ = nullptr;
  Function quick_ = nullptr, any_ = nullptr;
  PixelProgram program_ = device::Photographs(32, 3, DType::kFloat32, DType::kFloat16);
  DevicePtr out_ = 0;
};

TEST_F(FakeCudaKernelTest, RunsThemInTheStreamsOrder) {
  const std::vector<uint8_t> images = device::RandomImages(program_, kImages);
  const std::vector<uint8_t> expected = device::Made(program_, images);
  for (const auto& [function, blocks] : {std::pair(quick_, 2U), std::pair(any_, 6U)}) {
    std::vector<uint8_t> made(expected.size());
    FakeCudaHoldCopies(1);
    ASSERT_EQ(driver_->memcpy_htod_async(memory_, images.data(), images.size(), one_), kSuccess);
    ASSERT_EQ(Launch(function, blocks, 32), kSuccess) << FakeCudaLastRefusal();
    FakeCudaHoldCopies(0);
    ASSERT_EQ(driver_->memcpy_dtoh_async(made.data(), out_, made.size(), one_), kSuccess);
    ASSERT_EQ(driver_->stream_synchronize(one_), kSuccess);
    EXPECT_EQ(made, expected);
    ASSERT_EQ(driver_->memcpy_htod_async(out_, host_, kBytes, one_), kSuccess);
  }
  ASSERT_EQ(driver_->stream_synchronize(one_), kSuccess);
}

TEST_F(FakeCudaKernelTest, RefusesWhatIsNoCodeAndNames) {
  Module module = nullptr;
  Function function = nullptr;
  EXPECT_EQ(driver_->module_load_data(&module, host_), kErrorInvalidImage);
  EXPECT_EQ(driver_->module_get_function(&function, module_, "ImagesOfSixChannels"), kErrorNotFound);
  setenv("FAKE_CUDA_OLD", "1", 1);
  EXPECT_EQ(driver_->module_load_data(&module, kCode), kErrorUnsupportedPtxVersion);
  unsetenv("FAKE_CUDA_OLD");
  ASSERT_EQ(driver_->module_load_data(&module, kCode), kSuccess);
  ASSERT_EQ(driver_->module_get_function(&function, module, device::kAnyKernel), kSuccess);
  ASSERT_EQ(driver_->module_unload(module), kSuccess);
  EXPECT_EQ(driver_->module_unload(module), kErrorInvalidHandle);
  EXPECT_EQ(driver_->module_get_function(&function, module, device::kAnyKernel), kErrorInvalidHandle);
  EXPECT_EQ(Launch(function, 6, 32), kErrorInvalidHandle) << "its code was unloaded";
}

TEST_F(FakeCudaKernelTest, RefusesGridsAndArgumentsThatCannotBe) {
  EXPECT_EQ(Launch(quick_, 0, 32), kErrorInvalidValue);
  EXPECT_EQ(Launch(quick_, 2, 0), kErrorInvalidValue);
  EXPECT_EQ(Launch(quick_, 2, 512), kErrorLaunchOutOfResources) << "beyond its launch bounds";
  EXPECT_EQ(Launch(any_, 5, 32), kErrorInvalidValue) << "two planes of an image";
  EXPECT_EQ(driver_->launch_kernel(quick_, 2, 1, 1, 32, 1, 1, 0, one_, nullptr, nullptr), kErrorInvalidValue);
  program_.pixels = 33;
  EXPECT_EQ(Launch(quick_, 2, 32), kErrorInvalidValue) << "no whole vectors";
  program_.pixels = 32;
  program_.channels = 4;
  EXPECT_EQ(Launch(quick_, 2, 32), kErrorInvalidValue) << "a kernel for three";
  program_.channels = 3;
  out_ += 8;
  EXPECT_EQ(Launch(quick_, 2, 32), kErrorMisalignedAddress);
  EXPECT_EQ(Launch(any_, 6, 32), kSuccess) << "aligned to its values";
  ASSERT_EQ(driver_->stream_synchronize(one_), kSuccess);
  out_ -= 8;
}

TEST_F(FakeCudaKernelTest, NoticesMemoryThatIsNotThereWhenItRuns) {
  const int64_t before = State().refusals;
  ASSERT_EQ(Launch(quick_, 100, 32), kSuccess) << "more images than there is memory for";
  ASSERT_EQ(driver_->stream_synchronize(one_), kSuccess);
  EXPECT_EQ(State().refusals, before + 1);
  FakeCudaHoldCopies(1);
  DevicePtr freed = 0;
  ASSERT_EQ(driver_->mem_alloc(&freed, kBytes), kSuccess);
  ASSERT_EQ(driver_->memcpy_htod_async(memory_, host_, kBytes, one_), kSuccess);
  std::swap(out_, freed);
  ASSERT_EQ(Launch(quick_, 2, 32), kSuccess);
  std::swap(out_, freed);
  ASSERT_EQ(driver_->mem_free(freed), kSuccess);
  FakeCudaHoldCopies(0);
  ASSERT_EQ(driver_->stream_synchronize(one_), kSuccess);
  EXPECT_EQ(State().refusals, before + 2);
  EXPECT_STREQ(FakeCudaLastRefusal(), "a kernel found its memory freed, unmapped or too short");
}

}  // namespace
}  // namespace headrace::gpu
