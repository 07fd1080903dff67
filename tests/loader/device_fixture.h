// A trainer in this process, before the stand-in for the CUDA driver, and what it must leave there: nothing.
#pragma once

#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

#include "common/gpu/context.h"
#include "tests/fakes/fake_cuda.h"
#include "tests/fakes/held_kernel.h"
#include "tests/loader/device_run.h"

namespace headrace::testing {

inline FakeCudaState State() {
  FakeCudaState state;
  FakeCudaGetState(&state);
  return state;
}

class DeviceTest : public ::testing::Test {
 protected:
  DeviceTest() : before_(State()) {
    setenv("HEADRACE_LOADER_TIMEOUT", "60", 1);
    driver_ = *gpu::Driver::Open();
  }
  void TearDown() override {
    Disconnect();
    const FakeCudaState after = State();
    EXPECT_EQ(after.contexts + after.streams + after.events + after.registrations + after.device_bytes, 0);
    EXPECT_EQ(after.copies_to_device, before_.copies_to_device) << "no copy is the trainer's";
    EXPECT_EQ(after.refusals, before_.refusals) << FakeCudaLastRefusal();
  }
  void Disconnect() {
    headrace_iterator_free(iterator_);
    headrace_dataset_free(dataset_);
    iterator_ = nullptr;
    dataset_ = nullptr;
  }

  headrace_status Connect(const LoaderRun& run, int32_t takes_device = 1, std::vector<int32_t> gpus = {}) {
    Disconnect();
    directory_ = run.directory(0);
    headrace_connect_options options{};
    options.size = sizeof(options);
    options.directory = directory_.c_str();
    options.timeout_ms = 60000;
    options.takes_device = takes_device;
    options.num_gpus = static_cast<int32_t>(gpus.size());
    options.gpus = gpus.data();
    return headrace_connect(&options, &dataset_);
  }
  headrace_status Iterate(int32_t replica = HEADRACE_WHOLE_WORKER) {
    headrace_iterator_free(iterator_);
    iterator_ = nullptr;
    return headrace_iterator_create(dataset_, replica, &iterator_);
  }
  std::string Memory() const {
    headrace_info info{};
    info.size = sizeof(info);
    EXPECT_EQ(headrace_get_info(dataset_, &info), HEADRACE_OK);
    EXPECT_THAT(info.memory_reason, ::testing::StartsWith(info.memory));
    return info.memory_reason;
  }
  headrace_batch* Next() {
    headrace_batch* batch = nullptr;
    EXPECT_EQ(headrace_next(iterator_, 60000, &batch), HEADRACE_OK) << headrace_last_error();
    return batch;
  }
  static headrace_tensor Tensor(const headrace_batch* batch, int32_t index = 0) {
    headrace_tensor tensor{};
    tensor.size = sizeof(tensor);
    EXPECT_EQ(headrace_batch_tensor(batch, index, &tensor), HEADRACE_OK) << headrace_last_error();
    return tensor;
  }
  static std::vector<int64_t> Values(const headrace_batch* batch, int32_t index = 0) {
    std::vector<int64_t> values(static_cast<size_t>(Tensor(batch, index).nbytes) / sizeof(int64_t));
    EXPECT_EQ(headrace_batch_copy_tensor(batch, index, values.data()), HEADRACE_OK) << headrace_last_error();
    return values;
  }
  // A stream of the trainer's, which reads as a kernel would.
  class Stream {
   public:
    explicit Stream(const gpu::Driver* driver, int gpu = 0)
        : driver_(*driver), context_(*gpu::PrimaryContext::Retain(driver, gpu)) {
      const gpu::PrimaryContext::Current current(*context_);
      EXPECT_EQ(driver_.stream_create(&stream_, gpu::kStreamNonBlocking), gpu::kSuccess);
    }
    ~Stream() {
      const gpu::PrimaryContext::Current current(*context_);
      EXPECT_EQ(driver_.stream_destroy(stream_), gpu::kSuccess);
    }
    void Use(const headrace_batch* batch) {
      EXPECT_EQ(headrace_batch_use_on_stream(batch, stream_), HEADRACE_OK) << headrace_last_error();
    }
    void Run(fakes::HeldKernel* kernel) {
      const gpu::PrimaryContext::Current current(*context_);
      EXPECT_EQ(cuLaunchHostFunc(stream_, fakes::HeldKernel::Run, kernel), gpu::kSuccess);
    }
    void Read(const headrace_tensor& tensor, std::vector<int64_t>* to) {
      const gpu::PrimaryContext::Current current(*context_);
      to->resize(static_cast<size_t>(tensor.nbytes) / sizeof(int64_t));
      EXPECT_EQ(driver_.memcpy_dtoh_async(to->data(), reinterpret_cast<gpu::DevicePtr>(tensor.data),
                                          static_cast<size_t>(tensor.nbytes), stream_),
                gpu::kSuccess);
    }
    void Synchronize() {
      const gpu::PrimaryContext::Current current(*context_);
      EXPECT_EQ(driver_.stream_synchronize(stream_), gpu::kSuccess);
    }

   private:
    const gpu::Driver& driver_;
    const std::unique_ptr<gpu::PrimaryContext> context_;
    gpu::Stream stream_ = nullptr;
  };

  const FakeCudaState before_;
  const gpu::Driver* driver_ = nullptr;
  std::string directory_;
  headrace_dataset* dataset_ = nullptr;
  headrace_iterator* iterator_ = nullptr;
};

}  // namespace headrace::testing
