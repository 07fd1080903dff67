// Batches on a real GPU, where this machine has one; elsewhere each test says that it was skipped, and why.
#include <sys/mman.h>

#include <memory>

#include "common/gpu/context.h"
#include "tests/client/client_fixture.h"

namespace headrace {
namespace {

class GpuTest : public ClientTest {
 protected:
  void SetUp() override {
    const Result<int> gpus = gpu::CountGpus();
    if (!gpus.ok()) GTEST_SKIP() << "no GPU here: " << gpus.status().ToString();
    driver_ = *gpu::Driver::Open();
    context_ = std::move(*gpu::PrimaryContext::Retain(driver_, 0));
  }

  headrace_iterator* IterateOnGpu(int32_t device_batches) {
    headrace_connect_options options{};
    options.size = sizeof(options);
    options.directory = options_.directory.c_str();
    options.timeout_ms = 10000;
    options.takes_device = 1;
    options.device_batches = device_batches;
    headrace_dataset* dataset = nullptr;
    EXPECT_EQ(headrace_connect(&options, &dataset), HEADRACE_OK) << headrace_last_error();
    datasets_.push_back(dataset);
    return Iterate(0);
  }

  static headrace_batch* Next(headrace_iterator* iterator) {
    headrace_batch* batch = nullptr;
    EXPECT_EQ(headrace_next(iterator, 10000, &batch), HEADRACE_OK) << headrace_last_error();
    return batch;
  }

  std::vector<int64_t> Labels(uint64_t epoch, uint64_t step) const {
    std::vector<int64_t> labels(static_cast<size_t>(options_.rows));
    for (size_t i = 0; i < labels.size(); ++i) {
      labels[i] = fakes::FakeLoader::Label(options_, epoch, step, 0) + static_cast<int64_t>(i);
    }
    return labels;
  }

  const gpu::Driver* driver_ = nullptr;
  std::unique_ptr<gpu::PrimaryContext> context_;
};

TEST_F(GpuTest, EveryBatchArrivesWhole) {
  options_.rows = 10000;
  options_.steps = 50;
  auto loader = StartLoader();
  headrace_iterator* iterator = IterateOnGpu(0);
  for (uint64_t step = 0; step < 50; ++step) {
    headrace_batch* batch = Next(iterator);
    headrace_tensor label{};
    label.size = sizeof(label);
    ASSERT_EQ(headrace_batch_tensor(batch, 0, &label), HEADRACE_OK) << headrace_last_error();
    EXPECT_EQ(label.device_type, 2);
    std::vector<int64_t> labels(10000);
    ASSERT_EQ(headrace_batch_copy_tensor(batch, 0, labels.data()), HEADRACE_OK) << headrace_last_error();
    EXPECT_EQ(labels, Labels(0, step));
    headrace_batch_free(batch);
  }
}

// The trainer's stream is given more and more to do and never waited for, and the memory is one batch's.
TEST_F(GpuTest, StreamReadsEachBatchBeforeTheNextOneComes) {
  constexpr uint64_t kSteps = 40;
  options_.rows = 500000;
  options_.steps = kSteps;
  auto loader = StartLoader();
  headrace_iterator* iterator = IterateOnGpu(1);
  const gpu::PrimaryContext::Current current(*context_);
  gpu::Stream stream = nullptr;
  ASSERT_EQ(driver_->stream_create(&stream, gpu::kStreamNonBlocking), gpu::kSuccess);
  const size_t bytes = static_cast<size_t>(options_.rows) * sizeof(int64_t);
  // Registered, or the driver would stop the host at each read.
  void* const read = mmap(nullptr, kSteps * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_EQ(driver_->mem_host_register(read, kSteps * bytes, 0), gpu::kSuccess);
  auto* const labels = static_cast<int64_t*>(read);
  for (uint64_t step = 0; step < kSteps; ++step) {
    headrace_batch* batch = Next(iterator);
    headrace_tensor label{};
    label.size = sizeof(label);
    ASSERT_EQ(headrace_batch_tensor(batch, 0, &label), HEADRACE_OK) << headrace_last_error();
    ASSERT_EQ(headrace_batch_use_on_stream(batch, stream), HEADRACE_OK) << headrace_last_error();
    ASSERT_EQ(driver_->memcpy_dtoh_async(labels + step * static_cast<uint64_t>(options_.rows),
                                         reinterpret_cast<gpu::DevicePtr>(label.data), bytes, stream),
              gpu::kSuccess);
    headrace_batch_free(batch);
  }
  ASSERT_EQ(driver_->stream_synchronize(stream), gpu::kSuccess);
  for (uint64_t step = 0; step < kSteps; ++step) {
    const int64_t* const of_step = labels + step * static_cast<uint64_t>(options_.rows);
    EXPECT_EQ(std::vector<int64_t>(of_step, of_step + options_.rows), Labels(0, step)) << step;
  }
  EXPECT_EQ(driver_->mem_host_unregister(read), gpu::kSuccess);
  munmap(read, kSteps * bytes);
  EXPECT_EQ(driver_->stream_destroy(stream), gpu::kSuccess);
}

}  // namespace
}  // namespace headrace
