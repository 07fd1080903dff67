// What a batch that is ready costs through the C ABI. One line a figure:
//   name  median  unit  ratio-to-something-of-this-machine
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "headrace/client.h"
#include "tests/bench/timing.h"
#include "tests/fakes/fake_loader.h"

using headrace::bench::Median;
using headrace::bench::NowNs;
using headrace::fakes::FakeLoader;
using headrace::fakes::FakeLoaderOptions;

namespace {

constexpr int64_t kSteps = 8000;
constexpr int64_t kSleptSteps = 1000;

__attribute__((noinline)) int Empty(int value) {
  asm volatile("" : "+r"(value));
  return value;
}

void Fail(const char* what) {
  std::fprintf(stderr, "client_next_bench: %s: %s\n", what, headrace_last_error());
  std::exit(1);
}

struct Times {
  double next_ns = 0;       // headrace_next
  double next_free_ns = 0;  // headrace_next and headrace_batch_free
};

// `waiting`: the ring is kept full by a loader that sleeps whenever it is, so that a release has somebody to wake.
// `step`: what the trainer does between two batches, asleep as while a GPU computes, so that the caches are others'.
Times Measure(bool waiting, std::chrono::milliseconds step = {}) {
  const int64_t steps = step.count() > 0 ? kSleptSteps : kSteps;
  char name[] = "/dev/shm/headrace-bench-XXXXXX";
  FakeLoaderOptions options;
  options.directory = mkdtemp(name);
  options.steps = -1;
  options.slots = waiting ? 16 : kSteps;
  options.pause_at_step = waiting ? -1 : kSteps;
  auto loader = FakeLoader::Start(options);
  if (!loader.ok()) Fail(loader.status().ToString().c_str());
  const auto& header = (*loader)->header(0);
  while (header.published.load() < options.slots) {
  }
  headrace_connect_options connect{};
  connect.size = sizeof(connect);
  connect.directory = options.directory.c_str();
  connect.timeout_ms = 10000;
  headrace_dataset* dataset = nullptr;
  headrace_iterator* iterator = nullptr;
  if (headrace_connect(&connect, &dataset) != HEADRACE_OK) Fail("connect");
  if (headrace_iterator_create(dataset, 0, &iterator) != HEADRACE_OK) Fail("iterator");
  std::vector<double> next, next_free;
  for (int64_t i = 0; i < steps; ++i) {
    std::this_thread::sleep_for(step);
    if (waiting) {
      while (header.loader_waiting.load() == 0) {
      }
    }
    headrace_batch* batch = nullptr;
    const double start = NowNs();
    if (headrace_next(iterator, -1, &batch) != HEADRACE_OK) Fail("next");
    const double middle = NowNs();
    headrace_batch_free(batch);
    const double end = NowNs();
    next.push_back(middle - start);
    next_free.push_back(end - start);
  }
  headrace_iterator_free(iterator);
  headrace_dataset_free(dataset);
  loader->reset();
  std::filesystem::remove_all(options.directory);
  return {Median(next), Median(next_free)};
}

double EmptyCallNs() {
  constexpr int kCalls = 10000000;
  const double start = NowNs();
  for (int i = 0; i < kCalls; ++i) Empty(i);
  return (NowNs() - start) / kCalls;
}

double MemcpyNs(size_t bytes) {
  std::vector<char> from(bytes, 1), to(bytes, 2);
  std::vector<double> times;
  for (int i = 0; i < 200; ++i) {
    const double start = NowNs();
    std::memcpy(to.data(), from.data(), bytes);
    asm volatile("" ::"r"(to.data()) : "memory");
    times.push_back(NowNs() - start);
  }
  return Median(times);
}

}  // namespace

int main() {
  const double empty = EmptyCallNs();
  const double copy = MemcpyNs(1 << 20);
  const Times ready = Measure(false);
  const Times waiting = Measure(true);
  const Times slept = Measure(true, std::chrono::milliseconds(4));
  std::printf("empty_call              %9.1f ns\n", empty);
  std::printf("memcpy_1MiB             %9.1f ns\n", copy);
  std::printf("c_next_ready            %9.1f ns  %8.1f empty calls  %.4f of memcpy_1MiB\n", ready.next_ns,
              ready.next_ns / empty, ready.next_ns / copy);
  std::printf("c_next_ready+free       %9.1f ns  %8.1f empty calls  %.4f of memcpy_1MiB\n", ready.next_free_ns,
              ready.next_free_ns / empty, ready.next_free_ns / copy);
  std::printf("c_next+free_wakes_loader%9.1f ns  %8.1f empty calls  %.4f of memcpy_1MiB\n", waiting.next_free_ns,
              waiting.next_free_ns / empty, waiting.next_free_ns / copy);
  std::printf("c_next_after_4ms        %9.1f ns  %8.1f empty calls  %.4f of memcpy_1MiB\n", slept.next_ns,
              slept.next_ns / empty, slept.next_ns / copy);
  return 0;
}
