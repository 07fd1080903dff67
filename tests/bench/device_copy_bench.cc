// Batches on their way to a GPU, beside a plain copy of as many bytes. One line a figure. Needs a GPU; against a
// stand-in driver ($HEADRACE_LIBCUDA) it runs, and its figures say nothing.
//   device_copy_bench [MEBIBYTES]     of a batch; 64
#include <sys/mman.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/gpu/context.h"
#include "headrace/client.h"
#include "tests/bench/timing.h"
#include "tests/fakes/fake_loader.h"

using headrace::Result;
using headrace::bench::Median;
using headrace::bench::NowNs;
using headrace::fakes::FakeLoader;
using headrace::fakes::FakeLoaderOptions;
namespace gpu = headrace::gpu;

namespace {

constexpr int kBatches = 100;
constexpr int64_t kRowBytes = 20;  // of the fake loader's label and x

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "device_copy_bench: %s\n", what.c_str());
  std::exit(1);
}

void Must(const gpu::Driver& driver, gpu::Error error, const char* call) {
  const headrace::Status status = driver.Check(error, call);
  if (!status.ok()) Fail(status.ToString());
}

// Bytes in a nanosecond of copies one after another from locked memory.
double PlainCopy(const gpu::Driver& driver, gpu::Stream stream, size_t bytes) {
  void* const from = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  gpu::DevicePtr to = 0;
  Must(driver, driver.mem_host_register(from, bytes, gpu::kMemHostRegisterPortable), "cuMemHostRegister");
  Must(driver, driver.mem_alloc(&to, bytes), "cuMemAlloc");
  double start = 0;
  for (int i = -5; i < kBatches; ++i) {
    if (i == 0) {
      Must(driver, driver.stream_synchronize(stream), "cuStreamSynchronize");
      start = NowNs();
    }
    Must(driver, driver.memcpy_htod_async(to, from, bytes, stream), "cuMemcpyHtoDAsync");
  }
  Must(driver, driver.stream_synchronize(stream), "cuStreamSynchronize");
  const double rate = static_cast<double>(bytes) * kBatches / (NowNs() - start);
  Must(driver, driver.mem_free(to), "cuMemFree");
  Must(driver, driver.mem_host_unregister(from), "cuMemHostUnregister");
  munmap(from, bytes);
  return rate;
}

// A fake loader that only hands slots out, and a client that takes them to the GPU.
class Input {
 public:
  explicit Input(int64_t rows) {
    char name[] = "/dev/shm/headrace-bench-XXXXXX";
    FakeLoaderOptions options;
    options.directory = directory_ = mkdtemp(name);
    options.steps = -1;
    options.rows = rows;
    options.slots = 6;
    options.fill = false;
    auto loader = FakeLoader::Start(options);
    if (!loader.ok()) Fail(loader.status().ToString());
    loader_ = std::move(*loader);
    headrace_connect_options connect{};
    connect.size = sizeof(connect);
    connect.directory = directory_.c_str();
    connect.timeout_ms = 10000;
    connect.takes_device = 1;
    if (headrace_connect(&connect, &dataset_) != HEADRACE_OK) Fail(headrace_last_error());
    if (headrace_iterator_create(dataset_, 0, &iterator_) != HEADRACE_OK) Fail(headrace_last_error());
  }
  ~Input() {
    headrace_iterator_free(iterator_);
    headrace_dataset_free(dataset_);
    loader_.reset();
    std::filesystem::remove_all(directory_);
  }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  // Takes the next batch as a step on `stream` does; returns the time that headrace_next took.
  double Step(gpu::Stream stream) {
    headrace_batch* batch = nullptr;
    const double start = NowNs();
    if (headrace_next(iterator_, -1, &batch) != HEADRACE_OK) Fail(headrace_last_error());
    const double took = NowNs() - start;
    if (headrace_batch_use_on_stream(batch, stream) != HEADRACE_OK) Fail(headrace_last_error());
    headrace_batch_free(batch);
    return took;
  }

 private:
  std::string directory_;
  std::unique_ptr<FakeLoader> loader_;
  headrace_dataset* dataset_ = nullptr;
  headrace_iterator* iterator_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  const size_t bytes = (argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 64) << 20;
  const Result<const gpu::Driver*> driver = gpu::Driver::Open();
  if (!driver.ok()) Fail(driver.status().ToString());
  auto context = gpu::PrimaryContext::Retain(*driver, 0);
  if (!context.ok()) Fail(context.status().ToString());
  const gpu::PrimaryContext::Current current(**context);
  gpu::Stream stream = nullptr;
  Must(**driver, (*driver)->stream_create(&stream, gpu::kStreamNonBlocking), "cuStreamCreate");

  const double plain = PlainCopy(**driver, stream, bytes);
  const int64_t rows = static_cast<int64_t>(bytes) / kRowBytes;
  Input large(rows);
  for (int i = 0; i < 10; ++i) large.Step(stream);
  Must(**driver, (*driver)->stream_synchronize(stream), "cuStreamSynchronize");
  const double start = NowNs();
  for (int i = 0; i < kBatches; ++i) large.Step(stream);
  Must(**driver, (*driver)->stream_synchronize(stream), "cuStreamSynchronize");
  const double ours = static_cast<double>(rows * kRowBytes) * kBatches / (NowNs() - start);

  Input small(64);
  std::vector<double> next;
  for (int i = 0; i < 500; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // a step of training, in which the next batch comes
    next.push_back(small.Step(stream));
  }
  std::printf("plain_copy_to_gpu     %9.3f GB/s\n", plain);
  std::printf("batches_to_gpu        %9.3f GB/s  %8.3f of plain_copy_to_gpu\n", ours, ours / plain);
  std::printf("c_next_ready_on_gpu   %9.1f ns\n", Median(next));
  Must(**driver, (*driver)->stream_destroy(stream), "cuStreamDestroy");
  return 0;
}
