// A trainer that reads a loader's GPU memory, which tests kill:
//   device_trainer DIRECTORY STEP
// Reads batches of a range from that step of epoch 0 on, on a stream that is behind with its work, frees each before
// the stream has come to it, and prints "STEP FIRST" once its values have been found consecutive; if there is a second
// component, each of its floats twice the lowest byte of the value. When its standard input ends, it prints "end BYTES"
// with the GPU memory that it has mapped, and waits to be killed.
#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>
#include <vector>

#include "common/gpu/context.h"
#include "headrace/client.h"
#include "tests/fakes/fake_cuda.h"

namespace gpu = headrace::gpu;

namespace {

constexpr size_t kBehind = 3;  // batches that the stream is behind

int Fail(const char* what) {
  std::printf("failed: %s: %s\n", what, headrace_last_error());
  std::fflush(stdout);
  return 1;
}

// A batch that the stream is to read.
struct Read {
  int64_t step = 0;
  std::vector<int64_t> values;
  std::vector<float> images;
  gpu::Event done = nullptr;
};

// What is wrong with what was read; empty: nothing.
std::string Torn(const Read& read) {
  for (size_t i = 0; i < read.values.size(); ++i) {
    if (read.values[i] != read.values[0] + static_cast<int64_t>(i)) {
      return "value " + std::to_string(i) + " is " + std::to_string(read.values[i]) + " after " +
             std::to_string(read.values[0]);
    }
  }
  for (size_t i = 0; i < read.images.size(); ++i) {
    if (read.images[i] != static_cast<float>(2 * (read.values[i] & 0xff))) {
      return "image " + std::to_string(i) + " is " + std::to_string(read.images[i]) + " of " +
             std::to_string(read.values[i]);
    }
  }
  return {};
}

// Enqueues, as a kernel would, a read of a tensor.
template <typename T>
bool Enqueue(const gpu::Driver& driver, gpu::Stream stream, const headrace_batch* batch, int32_t index,
             std::vector<T>* to) {
  headrace_tensor tensor{};
  tensor.size = sizeof(tensor);
  if (headrace_batch_tensor(batch, index, &tensor) != HEADRACE_OK || tensor.device_type != 2) return false;
  to->resize(static_cast<size_t>(tensor.nbytes) / sizeof(T));
  return driver.memcpy_dtoh_async(to->data(), reinterpret_cast<gpu::DevicePtr>(tensor.data),
                                  static_cast<size_t>(tensor.nbytes), stream) == gpu::kSuccess;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const gpu::Driver& driver = **gpu::Driver::Open();
  const auto context = std::move(*gpu::PrimaryContext::Retain(&driver, 0));
  const gpu::PrimaryContext::Current current(*context);
  gpu::Stream stream = nullptr;
  if (driver.stream_create(&stream, gpu::kStreamNonBlocking) != gpu::kSuccess) return Fail("stream");
  headrace_connect_options options{};
  options.size = sizeof(options);
  options.directory = argv[1];
  options.timeout_ms = 60000;
  options.takes_device = 1;
  headrace_position place{};
  place.size = sizeof(place);
  place.step = std::strtoll(argv[2], nullptr, 10);
  headrace_dataset* dataset = nullptr;
  headrace_iterator* iterator = nullptr;
  if (headrace_connect(&options, &dataset) != HEADRACE_OK) return Fail("connecting");
  if (headrace_iterator_create_at(dataset, 0, &place, &iterator) != HEADRACE_OK) return Fail("starting");
  std::deque<Read> reads;
  const auto finish = [&] {
    Read& read = reads.front();
    if (driver.event_synchronize(read.done) != gpu::kSuccess) return false;
    driver.event_destroy(read.done);
    if (const std::string torn = Torn(read); !torn.empty()) {
      std::printf("torn at step %lld: %s\n", static_cast<long long>(read.step), torn.c_str());
      return false;
    }
    std::printf("%lld %lld\n", static_cast<long long>(read.step), static_cast<long long>(read.values[0]));
    std::fflush(stdout);
    reads.pop_front();
    return true;
  };
  pollfd input{STDIN_FILENO, POLLIN, 0};
  while (poll(&input, 1, 0) == 0) {
    headrace_batch* batch = nullptr;
    if (headrace_next(iterator, 60000, &batch) != HEADRACE_OK) return Fail("next");
    if (headrace_batch_use_on_stream(batch, stream) != HEADRACE_OK) return Fail("using");
    Read& read = reads.emplace_back();
    read.step = headrace_batch_step(batch);
    // What a kernel takes before it reads.
    cuLaunchHostFunc(
        stream, [](void*) { usleep(100); }, nullptr);
    if (!Enqueue(driver, stream, batch, 0, &read.values) ||
        (headrace_batch_num_tensors(batch) > 1 && !Enqueue(driver, stream, batch, 1, &read.images)) ||
        driver.event_create(&read.done, gpu::kEventDisableTiming) != gpu::kSuccess ||
        driver.event_record(read.done, stream) != gpu::kSuccess) {
      return Fail("reading");
    }
    headrace_batch_free(batch);
    if (reads.size() > kBehind && !finish()) return Fail("values");
  }
  while (!reads.empty()) {
    if (!finish()) return Fail("values");
  }
  FakeCudaState state;
  FakeCudaGetState(&state);
  std::printf("end %lld\n", static_cast<long long>(state.device_bytes));
  std::fflush(stdout);
  pause();
  return 1;
}
