// A trainer that takes batches in GPU memory, on a GPU or before the stand-in for its driver, which tests kill:
//   device_trainer DIRECTORY STEP
// Reads batches of a range from that step of epoch 0 on, on a stream that is behind with its work, frees each before
// the stream has come to it, and prints "STEP FIRST" once its values have been found consecutive; if there is a second
// component, each of its floats twice the lowest byte of the value. When its standard input ends, it prints "end BYTES"
// with the GPU memory that it has, as the stand-in counts it ("end" on a GPU), and waits to be killed.
#include <dlfcn.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <list>
#include <string>

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

// Of the driver's functions those that are none of gpu::Driver's; the second is the stand-in's alone.
struct MoreOfTheDriver {
  decltype(&cuLaunchHostFunc) launch_host_function = nullptr;
  decltype(&FakeCudaGetState) get_state = nullptr;

  MoreOfTheDriver() {
    const char* const named = std::getenv(gpu::kLibraryEnv);
    void* const library = dlopen(named != nullptr ? named : "libcuda.so.1", RTLD_NOW);
    if (library == nullptr) return;
    launch_host_function = reinterpret_cast<decltype(launch_host_function)>(dlsym(library, "cuLaunchHostFunc"));
    get_state = reinterpret_cast<decltype(get_state)>(dlsym(library, "FakeCudaGetState"));
  }
};

// Where a tensor is read to: locked, or the driver would stop the host until it is read. Is never given back.
template <typename T>
struct Locked {
  T* values = nullptr;
  size_t size = 0;

  // REQUIRES: as many bytes each time.
  bool Lock(const gpu::Driver& driver, size_t bytes) {
    if (values != nullptr) return bytes == size * sizeof(T);
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || driver.mem_host_register(memory, bytes, 0) != gpu::kSuccess) return false;
    values = static_cast<T*>(memory);
    size = bytes / sizeof(T);
    return true;
  }
};

// A batch that the stream is to read. It is used again for later ones.
struct Read {
  int64_t step = 0;
  Locked<int64_t> values;
  Locked<float> images;
  gpu::Event done = nullptr;
};

// What is wrong with what was read; empty: nothing.
std::string Torn(const Read& read) {
  const int64_t* const values = read.values.values;
  for (size_t i = 0; i < read.values.size; ++i) {
    if (values[i] != values[0] + static_cast<int64_t>(i)) {
      return "value " + std::to_string(i) + " is " + std::to_string(values[i]) + " after " + std::to_string(values[0]);
    }
  }
  for (size_t i = 0; i < read.images.size; ++i) {
    const float image = read.images.values[i];
    if (image != static_cast<float>(2 * (values[i] & 0xff))) {
      return "image " + std::to_string(i) + " is " + std::to_string(image) + " of " + std::to_string(values[i]);
    }
  }
  return {};
}

// Enqueues, as a kernel would, a read of a tensor.
template <typename T>
bool Enqueue(const gpu::Driver& driver, gpu::Stream stream, const headrace_batch* batch, int32_t index, Locked<T>* to) {
  headrace_tensor tensor{};
  tensor.size = sizeof(tensor);
  if (headrace_batch_tensor(batch, index, &tensor) != HEADRACE_OK || tensor.device_type != 2) return false;
  const auto bytes = static_cast<size_t>(tensor.nbytes);
  return to->Lock(driver, bytes) && driver.memcpy_dtoh_async(to->values, reinterpret_cast<gpu::DevicePtr>(tensor.data),
                                                             bytes, stream) == gpu::kSuccess;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const gpu::Driver& driver = **gpu::Driver::Open();
  const auto context = std::move(*gpu::PrimaryContext::Retain(&driver, 0));
  const gpu::PrimaryContext::Current current(*context);
  const MoreOfTheDriver more;
  if (more.launch_host_function == nullptr) return Fail("the driver has no cuLaunchHostFunc");
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
  std::list<Read> reads;
  std::list<Read> done;
  const auto finish = [&] {
    Read& read = reads.front();
    if (driver.event_synchronize(read.done) != gpu::kSuccess) return false;
    if (const std::string torn = Torn(read); !torn.empty()) {
      std::printf("torn at step %lld: %s\n", static_cast<long long>(read.step), torn.c_str());
      return false;
    }
    std::printf("%lld %lld\n", static_cast<long long>(read.step), static_cast<long long>(*read.values.values));
    std::fflush(stdout);
    done.splice(done.end(), reads, reads.begin());
    return true;
  };
  pollfd input{STDIN_FILENO, POLLIN, 0};
  while (poll(&input, 1, 0) == 0) {
    headrace_batch* batch = nullptr;
    if (headrace_next(iterator, 60000, &batch) != HEADRACE_OK) return Fail("next");
    if (headrace_batch_use_on_stream(batch, stream) != HEADRACE_OK) return Fail("using");
    if (done.empty()) {
      if (driver.event_create(&done.emplace_back().done, gpu::kEventDisableTiming) != gpu::kSuccess)
        return Fail("event");
    }
    reads.splice(reads.end(), done, done.begin());
    Read& read = reads.back();
    read.step = headrace_batch_step(batch);
    // What a kernel takes before it reads.
    more.launch_host_function(
        stream, [](void*) { usleep(100); }, nullptr);
    if (!Enqueue(driver, stream, batch, 0, &read.values) ||
        (headrace_batch_num_tensors(batch) > 1 && !Enqueue(driver, stream, batch, 1, &read.images)) ||
        driver.event_record(read.done, stream) != gpu::kSuccess) {
      return Fail("reading");
    }
    headrace_batch_free(batch);
    if (reads.size() > kBehind && !finish()) return Fail("values");
  }
  while (!reads.empty()) {
    if (!finish()) return Fail("values");
  }
  if (more.get_state != nullptr) {
    FakeCudaState state;
    more.get_state(&state);
    std::printf("end %lld\n", static_cast<long long>(state.device_bytes));
  } else {
    std::puts("end");
  }
  std::fflush(stdout);
  pause();
  return 1;
}
