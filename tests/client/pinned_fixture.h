// A trainer that takes GPU memory, before the stand-in for the CUDA driver, which must be left as it was found.
#pragma once

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "common/gpu/context.h"
#include "tests/client/client_fixture.h"
#include "tests/fakes/fake_cuda.h"

namespace headrace {

class PinnedTest : public ClientTest {
 protected:
  PinnedTest() : before_(State()) {}

  // Frees the data sets, and then nothing of ours may be left in the driver.
  void TearDown() override {
    FakeCudaHoldCopies(0);
    for (headrace_iterator* iterator : iterators_) headrace_iterator_free(iterator);
    for (headrace_dataset* dataset : datasets_) headrace_dataset_free(dataset);
    iterators_.clear();
    datasets_.clear();
    const FakeCudaState after = State();
    EXPECT_EQ(after.contexts, 0);
    EXPECT_EQ(after.streams, 0);
    EXPECT_EQ(after.events, 0);
    EXPECT_EQ(after.registrations, 0);
    EXPECT_EQ(after.device_bytes, 0);
    EXPECT_EQ(after.pageable_copies, before_.pageable_copies);
    EXPECT_EQ(after.refusals, before_.refusals) << FakeCudaLastRefusal();
  }

  static FakeCudaState State() {
    FakeCudaState state;
    FakeCudaGetState(&state);
    return state;
  }

  headrace_status ConnectDevice(int32_t device_batches = 0, std::vector<int32_t> gpus = {}) {
    headrace_connect_options options{};
    options.size = sizeof(options);
    options.directory = options_.directory.c_str();
    options.timeout_ms = 10000;
    options.takes_device = 1;
    options.num_gpus = static_cast<int32_t>(gpus.size());
    options.gpus = gpus.data();
    options.device_batches = device_batches;
    headrace_dataset* dataset = nullptr;
    const headrace_status status = headrace_connect(&options, &dataset);
    if (status == HEADRACE_OK) datasets_.push_back(dataset);
    return status;
  }

  headrace_batch* Next(headrace_iterator* iterator) {
    headrace_batch* batch = nullptr;
    EXPECT_EQ(headrace_next(iterator, 10000, &batch), HEADRACE_OK) << headrace_last_error();
    return batch;
  }

  static headrace_tensor Tensor(const headrace_batch* batch, int32_t index) {
    headrace_tensor tensor{};
    tensor.size = sizeof(tensor);
    EXPECT_EQ(headrace_batch_tensor(batch, index, &tensor), HEADRACE_OK) << headrace_last_error();
    return tensor;
  }

  template <typename T>
  static std::vector<T> Copied(const headrace_batch* batch, int32_t index) {
    std::vector<T> values(static_cast<size_t>(Tensor(batch, index).nbytes) / sizeof(T));
    EXPECT_EQ(headrace_batch_copy_tensor(batch, index, values.data()), HEADRACE_OK) << headrace_last_error();
    return values;
  }

  // What FakeLoader writes as "label" and "x".
  std::vector<int64_t> Labels(uint64_t epoch, uint64_t step, int32_t replica = 0) const {
    std::vector<int64_t> labels;
    const int64_t first = fakes::FakeLoader::Label(options_, epoch, step, replica);
    for (int64_t i = 0; i < options_.rows; ++i) labels.push_back(first + i);
    return labels;
  }
  std::vector<float> Xs(uint64_t epoch, uint64_t step, int32_t replica = 0) const {
    std::vector<float> xs;
    for (const int64_t label : Labels(epoch, step, replica)) {
      for (int j = 0; j < 3; ++j) xs.push_back(static_cast<float>(label) + static_cast<float>(j) / 4);
    }
    return xs;
  }

  // Whether the condition comes true before the test would be stopped.
  template <typename Condition>
  static bool Eventually(Condition condition) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > limit) return false;
      std::this_thread::yield();
    }
    return true;
  }

  const FakeCudaState before_;
};

// A stream of the trainer's own on a GPU, current in this thread.
class TrainerStream {
 public:
  explicit TrainerStream(int gpu = 0)
      : driver_(**gpu::Driver::Open()), context_(*gpu::PrimaryContext::Retain(&driver_, gpu)), current_(*context_) {
    EXPECT_EQ(driver_.stream_create(&stream_, gpu::kStreamNonBlocking), gpu::kSuccess);
  }
  ~TrainerStream() { EXPECT_EQ(driver_.stream_destroy(stream_), gpu::kSuccess); }

  void* handle() const { return stream_; }
  // Enqueues, as a kernel would, a read of a tensor.
  void Read(const headrace_tensor& tensor, void* to) {
    EXPECT_EQ(driver_.memcpy_dtoh_async(to, reinterpret_cast<gpu::DevicePtr>(tensor.data),
                                        static_cast<size_t>(tensor.nbytes), stream_),
              gpu::kSuccess);
  }
  void Run(void (*function)(void*), void* user) { EXPECT_EQ(cuLaunchHostFunc(stream_, function, user), gpu::kSuccess); }
  void Synchronize() { EXPECT_EQ(driver_.stream_synchronize(stream_), gpu::kSuccess); }

 private:
  const gpu::Driver& driver_;
  const std::unique_ptr<gpu::PrimaryContext> context_;
  const gpu::PrimaryContext::Current current_;
  gpu::Stream stream_ = nullptr;
};

}  // namespace headrace
