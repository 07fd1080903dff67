#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <future>

#include "cli/commands.h"
#include "cli/input_flags.h"
#include "cli/interrupt.h"
#include "cli/loaders.h"
#include "cli/step_print.h"
#include "cli/trainers.h"
#include "cli/worker_stream.h"

namespace headrace::cli {
namespace {

constexpr auto kFlags = WithInputFlags({
    {"steps", "N", "stop each epoch after N steps", 0},
    {"epochs", "N", "number of epochs (default 1)", 0},
});

constexpr std::string_view kHelp =
    R"(Starts the same loaders as a cluster does, as processes on this machine, and prints what each
replica of each worker gets at every step. With a COMMAND, runs it once for each worker instead,
as its trainer: HEADRACE_DIR tells headrace.connect() where its loader is, and MASTER_ADDR,
MASTER_PORT, RANK and WORLD_SIZE are set as torchrun sets them. The exit status is that of the
first trainer that fails.

While it runs, `headrace top` in another terminal shows how fast the loaders are and who waits.

Relative paths in spec.source.files.paths are relative to the folder of FILE.

Examples:
  headrace run -f examples/digits/input.yaml --workers 2
  headrace run -f input.yaml --workers 2 --replicas 4 --steps 3
  headrace run -f examples/digits/input.yaml --workers 2 -- python3 examples/digits/train.py
)";

constexpr int kConnectTimeoutMs = 10000;

struct RunOptions {
  int64_t workers = 1;
  int64_t replicas = 1;
  int64_t steps = -1;
  int64_t epochs = 1;
};

Result<RunOptions> ReadOptions(const CommandLine& line, const SizedInput& sized) {
  ASSIGN_OR_RETURN(const auto steps, line.Integer("steps", 1));
  ASSIGN_OR_RETURN(const auto epochs, line.Integer("epochs", 1));
  return RunOptions{sized.workers, sized.replicas, steps.value_or(-1), epochs.value_or(1)};
}

std::string Count(int64_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

// Connects to all workers and prints their steps side by side.
class Printer {
 public:
  Printer(LoaderGroup* loaders, const RunOptions& options) : loaders_(loaders), options_(options) {}

  Status Connect(const std::string& input) {
    for (int64_t w = 0; w < loaders_->workers(); ++w) {
      const auto gone = [this, w] {
        return Interrupted() != 0 || !loaders_->Death(w).empty() || !loaders_->FunctionDeath(w).empty();
      };
      auto stream = WorkerStream::Connect(loaders_->RunDirectory(w), kConnectTimeoutMs, gone);
      if (!stream.ok()) {
        const std::string function = loaders_->FunctionDeath(w);
        const bool given_up = stream.status().code() == Code::kCancelled;
        return given_up && !function.empty() ? InvalidArgument(function) : Explain(w, stream.status());
      }
      streams_.push_back(std::move(stream).value());
    }
    const WorkerStream& first = *streams_[0];
    std::printf("%s: %s with %s each, policy %s\none replica's batch: %s\n", input.c_str(),
                Count(options_.workers, "worker").c_str(), Count(options_.replicas, "replica").c_str(),
                first.effective_policy().c_str(), first.element_spec().c_str());
    for (const std::string& warning : first.warnings()) std::fprintf(stderr, "warning: %s\n", warning.c_str());
    std::fflush(stdout);
    return Status();
  }

  Status PrintEpoch(int64_t epoch) {
    for (auto& stream : streams_) RETURN_IF_ERROR(stream->StartEpoch());
    int64_t step = 0;
    int64_t records = 0;
    while (step != options_.steps && !Stopped()) {
      ASSIGN_OR_RETURN(const bool any, PrintOneStep(step, &records));
      if (!any) break;
      ++step;
    }
    if (Stopped()) return Status();
    const char* reason = step == options_.steps ? "stopped" : "ended";
    std::printf("epoch %ld %s after %s, %s\n", static_cast<long>(epoch), reason, Count(step, "step").c_str(),
                Count(records, "record").c_str());
    std::fflush(stdout);
    return Status();
  }

  // An interrupt, or a reader of our output that has gone.
  static bool Stopped() { return Interrupted() != 0 || std::ferror(stdout) != 0; }

 private:
  Result<bool> PrintOneStep(int64_t step, int64_t* records) {
    // All workers at once, as trainers ask: one may wait for what another's trainer makes its loader do.
    std::vector<std::future<Result<WorkerStep>>> steps;
    for (const auto& stream : streams_) {
      steps.push_back(
          std::async(std::launch::async, [&stream] { return stream->Next(WorkerStream::Iteration::kNext, -1); }));
    }
    std::string text;
    bool any = false;
    for (size_t w = 0; w < streams_.size(); ++w) {
      Result<WorkerStep> next = steps[w].get();
      if (!next.ok()) return Explain(static_cast<int64_t>(w), next.status());
      const WorkerStep& batches = *next;
      any = any || !batches.empty();
      for (const ReplicaBatch& batch : batches) *records += batch.rows;
      text += PrintStep({step, static_cast<int64_t>(w), options_.workers, options_.replicas}, batches);
    }
    if (any) std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
    return any;
  }

  Status Explain(int64_t w, const Status& status) {
    const std::string death = loaders_->Death(w);
    return death.empty() ? status.WithContext("worker " + std::to_string(w)) : Status(status.code(), death);
  }

  LoaderGroup* loaders_;
  const RunOptions options_;
  std::vector<std::unique_ptr<WorkerStream>> streams_;
};

// What is printed is read in host memory, which has no images that a loader's GPU makes. Under Auto the CPU makes them.
Plan Printable(const Plan& plan) {
  if (plan.spec.delivery.memory != MemoryKind::kDevice) return plan;
  InputSpec spec = plan.spec;
  spec.delivery.memory = MemoryKind::kAuto;
  if (spec.delivery.resource_claim.empty()) spec.delivery.resource_claim = "gpu";  // under Device, a pod's only one
  return CompilePlan(std::move(spec), plan.input);
}

Result<int> RunInput(const CommandLine& line) {
  if (!line.positional().empty()) {
    return InvalidArgument("unexpected argument \"" + line.positional()[0] + "\": a COMMAND stands after --");
  }
  ASSIGN_OR_RETURN(const SizedInput sized, ReadSizedInput(line, "run"));
  ASSIGN_OR_RETURN(const RunOptions options, ReadOptions(line, sized));
  const LocalInput& input = sized.input;
  RETURN_IF_ERROR(CheckTopology(input.plan, {options.workers, 0, options.replicas}), sized.file);
  CatchInterrupts();
  signal(SIGPIPE, SIG_IGN);

  ASSIGN_OR_RETURN(const ScratchDirectory directory, ScratchDirectory::Make("headrace-run-"));
  LoaderOptions loader_options;
  loader_options.workers = options.workers;
  loader_options.replicas_per_worker = options.replicas;
  loader_options.function_output_fd = STDERR_FILENO;
  loader_options.metrics = true;
  loader_options.data_directory = input.data_directory;
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  loader_options.run_id = input.name + "-" + std::to_string(now);
  const bool prints = line.rest().empty();
  const Plan plan = prints ? Printable(input.plan) : input.plan;
  ASSIGN_OR_RETURN(const auto loaders, LoaderGroup::Start(plan, loader_options, directory.path()));
  if (!prints) return RunTrainers(line.rest(), *loaders);

  Printer printer(loaders.get(), options);
  RETURN_IF_ERROR(printer.Connect(input.name));
  for (int64_t epoch = 0; epoch < options.epochs && !Printer::Stopped(); ++epoch) {
    RETURN_IF_ERROR(printer.PrintEpoch(epoch));
  }
  return 0;
}

int Run(const CommandLine& line) {
  const Result<int> status = RunInput(line);
  if (Interrupted() != 0) return 128 + Interrupted();
  return status.ok() ? *status : Fail(status.status());
}

}  // namespace

const Command kRunCommand = {"run",
                             "run an input's loaders on this machine, and show what each replica gets",
                             "-f FILE [--workers N] [--replicas N] [--steps N] [--epochs N] [-- COMMAND...]",
                             kHelp,
                             kFlags,
                             Run};

}  // namespace headrace::cli
