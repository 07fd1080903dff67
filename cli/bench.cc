#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <fstream>
#include <mutex>
#include <sstream>
#include <thread>

#include "cli/bench_print.h"
#include "cli/commands.h"
#include "cli/input_flags.h"
#include "cli/interrupt.h"
#include "cli/loaders.h"
#include "cli/scrape.h"
#include "cli/top_print.h"
#include "cli/worker_stream.h"

namespace headrace::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kFlags = WithInputFlags({
    {"seconds", "N", "how long to measure (default 10)", 0},
});

constexpr std::string_view kHelp =
    R"(Measures how fast an input is read, on this machine: starts the loaders as `headrace run` does, takes
their batches out as fast as they come, epoch after epoch, and prints rates, the time to the first
batch, CPU time, memory, and where the time went. The last lines name the stage that limits, and
what can be done about it:

  read     one thread a worker: reads files, splits them into records, shuffles, batches, cuts
  decode   parses records and writes batches into the rings, on all CPUs that the loader may use

A stage waits for its input (read: for storage or the dataset function; decode: for read, or for
storage where records are read as they are decoded) or for its output (read: for decode; decode: for
a free place in a ring). The one that does not wait is the limit.

What it says holds for this machine, and for files as they lie now: read before, they come from
memory (the page cache). Measure on a machine and with CPU limits like those of the pods. A trainer
that takes T ms a step keeps up if the batches a second here, of one replica, are more than 1000/T.

Examples:
  headrace bench -f input.yaml
  headrace bench -f input.yaml --seconds 3 --workers 2 --replicas 4
  taskset -c 0,1 headrace bench -f input.yaml      with two CPUs, as a pod with that limit
)";

constexpr int kConnectTimeoutMs = 60000;
constexpr auto kWarmUp = std::chrono::seconds(1);
constexpr auto kTick = std::chrono::milliseconds(200);  // how soon an interrupt is seen

// Takes batches of one worker on a thread of its own, from construction to Stop or destruction.
class Drain {
 public:
  Drain(LoaderGroup* loaders, int64_t worker) : loaders_(*loaders), worker_(worker), thread_([this] { Run(); }) {}
  ~Drain() {
    Stop();
    thread_.join();
  }
  Drain(const Drain&) = delete;
  Drain& operator=(const Drain&) = delete;

  // Does not wait until it has.
  void Stop() { stop_ = true; }

  // When the first batch came; nothing before.
  std::optional<Clock::time_point> first() const {
    const std::lock_guard lock(mutex_);
    return first_;
  }
  // Why there will be no more batches.
  Status error() const {
    const std::lock_guard lock(mutex_);
    return error_;
  }

 private:
  void Run() {
    const Status status = TakeAll();
    if (status.ok() || stop_) return;
    const std::lock_guard lock(mutex_);
    error_ = status;
  }

  Status TakeAll() {
    const auto give_up = [this] { return stop_.load(); };
    ASSIGN_OR_RETURN(const auto stream,
                     WorkerStream::Connect(loaders_.RunDirectory(worker_), kConnectTimeoutMs, give_up));
    while (!stop_) {
      RETURN_IF_ERROR(stream->StartEpoch());
      bool any = false;
      while (!stop_) {
        ASSIGN_OR_RETURN(const WorkerStep step, stream->Next(WorkerStream::Iteration::kNext, -1));
        if (step.empty()) break;
        if (any) continue;
        any = true;
        const std::lock_guard lock(mutex_);
        if (!first_) first_ = Clock::now();
      }
      if (!any && !stop_) return InvalidArgument("the input has no batch: there is nothing to be measured");
    }
    return {};
  }

  LoaderGroup& loaders_;
  const int64_t worker_;
  std::atomic<bool> stop_{false};
  mutable std::mutex mutex_;
  std::optional<Clock::time_point> first_;
  Status error_;
  std::thread thread_;
};

// CPU time that a process has used, in seconds: user and system.
double CpuSeconds(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  // Fields 14 and 15 (proc(5)), counted after the name, which may hold anything.
  std::istringstream fields(text.substr(std::min(text.size(), text.rfind(')') + 2)));
  std::string field;
  for (int i = 3; i < 14; ++i) fields >> field;
  double user = 0;
  double system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

// The most resident memory that a process has had.
double PeakBytes(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  for (std::string word; file >> word;) {
    double kib = 0;
    if (word == "VmHWM:" && file >> kib) return kib * 1024;
  }
  return 0;
}

class Bench {
 public:
  Bench(LoaderGroup* loaders, Clock::time_point start) : loaders_(*loaders), start_(start) {
    for (int64_t w = 0; w < loaders->workers(); ++w) drains_.push_back(std::make_unique<Drain>(loaders, w));
  }
  ~Bench() {
    // All before the first is waited for: a loader waits for word from another whose trainer has stopped.
    for (const auto& drain : drains_) drain->Stop();
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  Result<BenchResult> Run(std::chrono::seconds length, const std::string& run_directory) {
    BenchResult result;
    std::fprintf(stderr, "waiting for the first batch\n");
    RETURN_IF_ERROR(While([this] { return !AllBegan(); }));
    for (const auto& drain : drains_) {
      const double ms = std::chrono::duration<double, std::milli>(*drain->first() - start_).count();
      result.first_batch_ms = std::max(result.first_batch_ms, ms);
    }
    std::fprintf(stderr, "measuring for %ld s, after %ld s\n", static_cast<long>(length.count()),
                 static_cast<long>(kWarmUp.count()));
    RETURN_IF_ERROR(Until(Clock::now() + kWarmUp));
    ASSIGN_OR_RETURN(const auto addresses, LoadersOf(run_directory));
    ASSIGN_OR_RETURN(const std::vector<Scrape> before, Sample(addresses));
    const double cpu_before = AllCpuSeconds();
    const Clock::time_point begin = Clock::now();
    RETURN_IF_ERROR(Until(begin + length));
    result.cpu_seconds = AllCpuSeconds() - cpu_before;
    result.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    ASSIGN_OR_RETURN(const std::vector<Scrape> after, Sample(addresses));
    for (size_t w = 0; w < after.size(); ++w) {
      const double seconds = std::chrono::duration<double>(after[w].time - before[w].time).count();
      result.workers.push_back(RatesBetween(before[w].sample, after[w].sample, seconds));
    }
    for (int64_t w = 0; w < loaders_.workers(); ++w) result.memory_bytes += PeakBytes(loaders_.pid(w));
    return result;
  }

 private:
  bool AllBegan() const {
    return std::all_of(drains_.begin(), drains_.end(), [](const auto& drain) { return drain->first().has_value(); });
  }

  // Lets time pass while `more`. Errors: a loader's or a drain's; Cancelled by an interrupt.
  template <typename More>
  Status While(const More& more) {
    while (more()) {
      if (Interrupted() != 0) return Cancelled("interrupted");
      for (int64_t w = 0; w < loaders_.workers(); ++w) {
        const std::string death = loaders_.Death(w);
        const std::string function = loaders_.FunctionDeath(w);
        if (!death.empty()) return Unavailable(death);
        RETURN_IF_ERROR(drains_[static_cast<size_t>(w)]->error(), "worker " + std::to_string(w));
        if (!function.empty()) return InvalidArgument(function);
      }
      std::this_thread::sleep_for(kTick);
    }
    return {};
  }
  Status Until(Clock::time_point end) {
    return While([end] { return Clock::now() < end; });
  }

  static Result<std::vector<Scrape>> Sample(const std::vector<MetricsAddress>& addresses) {
    std::vector<Scrape> scrapes = ScrapeAll(addresses);
    for (const Scrape& scrape : scrapes) RETURN_IF_ERROR(scrape.status);
    return scrapes;
  }

  double AllCpuSeconds() const {
    double seconds = 0;
    for (int64_t w = 0; w < loaders_.workers(); ++w) seconds += CpuSeconds(loaders_.pid(w));
    return seconds;
  }

  LoaderGroup& loaders_;
  const Clock::time_point start_;
  std::vector<std::unique_ptr<Drain>> drains_;
};

Result<int> BenchInput(const CommandLine& line) {
  if (!line.positional().empty()) return InvalidArgument("unexpected argument \"" + line.positional()[0] + "\"");
  ASSIGN_OR_RETURN(const SizedInput sized, ReadSizedInput(line, "bench"));
  ASSIGN_OR_RETURN(const auto seconds, line.Integer("seconds", 1));
  const LocalInput& input = sized.input;
  RETURN_IF_ERROR(CheckTopology(input.plan, {sized.workers, 0, sized.replicas}), sized.file);
  CatchInterrupts();
  ASSIGN_OR_RETURN(const ScratchDirectory directory, ScratchDirectory::Make("headrace-bench-"));
  LoaderOptions options;
  options.workers = sized.workers;
  options.replicas_per_worker = sized.replicas;
  options.data_directory = input.data_directory;
  options.run_id = input.name;
  options.metrics = true;
  options.function_output_fd = STDERR_FILENO;
  const Clock::time_point start = Clock::now();
  ASSIGN_OR_RETURN(const auto loaders, LoaderGroup::Start(input.plan, options, directory.path()));
  Bench bench(loaders.get(), start);
  ASSIGN_OR_RETURN(const BenchResult result, bench.Run(std::chrono::seconds(seconds.value_or(10)), directory.path()));
  std::printf("%s: %ld x %ld replicas\n", input.name.c_str(), static_cast<long>(sized.workers),
              static_cast<long>(sized.replicas));
  std::fputs(PrintBench(result).c_str(), stdout);
  return 0;
}

int RunBench(const CommandLine& line) {
  const Result<int> status = BenchInput(line);
  if (Interrupted() != 0) return 128 + Interrupted();
  return status.ok() ? *status : Fail(status.status());
}

}  // namespace

const Command kBenchCommand = {"bench",
                               "measure how fast an input is read, and which stage limits it",
                               "-f FILE [--workers N] [--replicas N] [--seconds N]",
                               kHelp,
                               kFlags,
                               RunBench};

}  // namespace headrace::cli
