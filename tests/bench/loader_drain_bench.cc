// The trainer of a measurement in C: takes batches out of a loader's ring as fast as they come, or, with --pause-ms, as
// a trainer that computes between two steps. Run it under `headrace run ... -- loader_drain_bench`; it prints what
// tests/bench/loaders/drain.py prints for the peers, one "name value" a line, and then stays until it is told to end,
// so that whoever measures can look at the processes.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "headrace/client.h"

namespace {

constexpr int64_t kPageBytes = 4096;

struct Options {
  double warmup_s = 1;
  double seconds = 3;
  double pause_ms = 0;
  double started_s = 0;  // when the loader was started, of CLOCK_MONOTONIC; 0: when this began
  bool touch = false;    // read one byte of every page
};

double Now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

[[noreturn]] void Fail(const std::string& why) {
  std::fprintf(stderr, "loader_drain_bench: %s\n", why.c_str());
  std::exit(1);
}

void Say(const char* name, double value) {
  std::printf("%s %.9g\n", name, value);
  std::fflush(stdout);
}

void Say(const char* name) {
  std::printf("%s\n", name);
  std::fflush(stdout);
}

Options ReadOptions(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--touch") {
      options.touch = true;
      continue;
    }
    double* value = flag == "--warmup"     ? &options.warmup_s
                    : flag == "--seconds"  ? &options.seconds
                    : flag == "--pause-ms" ? &options.pause_ms
                    : flag == "--started"  ? &options.started_s
                                           : nullptr;
    if (value == nullptr || i + 1 == argc) {
      Fail(flag + ": one of --warmup S, --seconds S, --pause-ms N, --started S, --touch is needed");
    }
    *value = std::atof(argv[++i]);
  }
  return options;
}

void Pause(double pause_ms) {
  if (pause_ms > 0) usleep(static_cast<useconds_t>(pause_ms * 1000));
}

uint64_t Touch(const headrace_batch* batch) {
  uint64_t sum = 0;
  for (int32_t i = 0; i < headrace_batch_num_tensors(batch); ++i) {
    headrace_tensor tensor{};
    tensor.size = sizeof(tensor);
    if (headrace_batch_tensor(batch, i, &tensor) != HEADRACE_OK) Fail(headrace_last_error());
    const auto* bytes = static_cast<const unsigned char*>(tensor.data);
    for (int64_t at = 0; at < tensor.nbytes; at += kPageBytes) sum += bytes[at];
  }
  return sum;
}

// Epoch after epoch of replica 0.
class Drain {
 public:
  explicit Drain(bool touch) : touch_(touch) {
    if (headrace_connect(nullptr, &dataset_) != HEADRACE_OK) Fail(headrace_last_error());
    StartEpoch();
  }
  ~Drain() {
    headrace_iterator_free(iterator_);
    headrace_dataset_free(dataset_);
  }
  Drain(const Drain&) = delete;
  Drain& operator=(const Drain&) = delete;

  // The records of the next batch. Adds how long headrace_next took, in seconds, to `times`, if that is not null.
  int64_t Next(std::vector<double>* times) {
    headrace_batch* batch = nullptr;
    const double start = Now();
    headrace_status status = headrace_next(iterator_, -1, &batch);
    if (times != nullptr) times->push_back(Now() - start);
    if (status == HEADRACE_END) {
      headrace_iterator_free(iterator_);
      StartEpoch();
      status = headrace_next(iterator_, -1, &batch);
    }
    if (status == HEADRACE_END) Fail("an epoch without a batch");
    if (status != HEADRACE_OK) Fail(headrace_last_error());
    const int64_t rows = headrace_batch_rows(batch);
    if (touch_) touched_ += Touch(batch);
    headrace_batch_free(batch);
    return rows;
  }

  // Of the bytes that were touched.
  uint64_t touched() const { return touched_; }

 private:
  void StartEpoch() {
    if (headrace_iterator_create(dataset_, 0, &iterator_) != HEADRACE_OK) Fail(headrace_last_error());
  }

  const bool touch_;
  headrace_dataset* dataset_ = nullptr;
  headrace_iterator* iterator_ = nullptr;
  uint64_t touched_ = 0;
};

void SayPercentile(const char* name, std::vector<double>* times, double share) {
  const size_t index = std::min(times->size() - 1, static_cast<size_t>(share * static_cast<double>(times->size())));
  std::nth_element(times->begin(), times->begin() + static_cast<std::ptrdiff_t>(index), times->end());
  Say(name, (*times)[index] * 1e6);
}

void Run(const Options& options) {
  const double began = options.started_s > 0 ? options.started_s : Now();
  Drain drain(options.touch);
  drain.Next(nullptr);
  Say("first_batch_ms", (Now() - began) * 1e3);
  const double warm = Now() + options.warmup_s;
  while (Now() < warm) {
    Pause(options.pause_ms);
    drain.Next(nullptr);
  }
  std::vector<double> times;
  times.reserve(size_t{1} << 22);
  Say("begin");
  int64_t records = 0;
  const double start = Now();
  while (Now() < start + options.seconds) {
    Pause(options.pause_ms);
    records += drain.Next(&times);
  }
  const double seconds = Now() - start;
  Say("records", static_cast<double>(records));
  Say("seconds", seconds);
  SayPercentile("next_p50_us", &times, 0.5);
  SayPercentile("next_p99_us", &times, 0.99);
  SayPercentile("next_max_us", &times, 1);
  if (options.touch) Say("touched", static_cast<double>(drain.touched()));
  Say("end");
  while (true) pause();
}

}  // namespace

int main(int argc, char** argv) {
  Run(ReadOptions(argc, argv));
  return 0;
}
