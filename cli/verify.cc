#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <fstream>
#include <mutex>
#include <regex>
#include <thread>

#include "cli/case_function.h"
#include "cli/case_reader.h"
#include "cli/case_run.h"
#include "cli/commands.h"
#include "cli/conformance.h"
#include "cli/interrupt.h"

namespace headrace::cli {
namespace {

constexpr Flag kFlags[] = {
    {"filter", "REGEX", "only cases whose name matches (anywhere in the name)", 0},
    {"jobs", "N", "cases at a time (default: the number of processors)", 'j'},
    {"separate", "", "read each replica in a process of its own, as one-process-per-GPU trainers do", 0},
    {"read", "WHAT", "be such a process, for the loader in $HEADRACE_DIR", 0},
    {"serve", "", "be the dataset function of the one case in CASES.jsonl, for the loader in $HEADRACE_DIR", 0},
};

constexpr std::string_view kHelp =
    R"(Runs conformance cases, one JSON object a line: writes each case's files, starts a loader
process for each worker, attaches a client for each replica, and compares what they get with
what TensorFlow gives. Prints a line for each case that fails, then "N passed, N failed".
The exit status is 0 only if cases ran and none failed.

Examples:
  headrace verify tests/conformance/cases.jsonl
  headrace verify tests/conformance/cases.jsonl --filter '^seed-file' --jobs 4
  headrace verify tests/conformance/cases.jsonl --separate
)";

Result<std::vector<ConformanceCase>> ReadCases(const std::string& path, const std::string& filter) {
  std::regex pattern;
  try {
    pattern = std::regex(filter);
  } catch (const std::regex_error& e) {
    return InvalidArgument("--filter " + filter + ": not a regular expression: " + e.what());
  }
  errno = 0;
  std::ifstream file(path);
  if (!file) return ErrnoStatus(errno != 0 ? errno : EIO, path);
  std::vector<ConformanceCase> cases;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    Result<ConformanceCase> parsed = ParseCase(line);
    RETURN_IF_ERROR(parsed.status(), path + ":" + std::to_string(number));
    if (std::regex_search(parsed->name, pattern)) cases.push_back(std::move(parsed).value());
  }
  return cases;
}

// Runs the cases on several threads and prints as they end. A loader dies with the thread that started it, and each
// case's loaders are started and stopped by one thread.
class Verification {
 public:
  Verification(std::vector<ConformanceCase> cases, Readers readers) : cases_(std::move(cases)), readers_(readers) {}

  void Run(int64_t jobs) {
    std::vector<std::jthread> threads;
    for (int64_t i = 0; i < jobs; ++i) {
      threads.emplace_back([this] {
        for (size_t at = next_++; at < cases_.size() && Interrupted() == 0; at = next_++) {
          Report(cases_[at], RunCase(cases_[at], readers_));
        }
        const std::lock_guard lock(mutex_);
        ++ended_threads_;
        changed_.notify_one();
      });
    }
    std::unique_lock lock(mutex_);
    const std::chrono::milliseconds interval(isatty(STDERR_FILENO) != 0 ? 200 : 5000);
    while (!changed_.wait_for(lock, interval, [&] { return ended_threads_ == jobs; })) ShowProgress();
    ClearProgress();
  }

  int passed() const { return passed_; }
  int failed() const { return failed_; }

 private:
  void Report(const ConformanceCase& conformance_case, const std::vector<std::string>& differences) {
    if (Interrupted() != 0) return;  // its loaders were interrupted too
    const std::lock_guard lock(mutex_);
    if (differences.empty()) {
      ++passed_;
      return;
    }
    ++failed_;
    ClearProgress();
    std::string line = "FAIL " + conformance_case.name + ": ";
    for (size_t i = 0; i < differences.size(); ++i) line += (i > 0 ? "; " : "") + differences[i];
    for (char& c : line) c = c == '\n' ? ' ' : c;
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  }

  void ShowProgress() {
    const bool tty = isatty(STDERR_FILENO) != 0;
    std::fprintf(stderr, "%s%d of %zu cases, %d failed%s", tty ? "\r" : "", passed_ + failed_, cases_.size(), failed_,
                 tty ? "" : "\n");
    std::fflush(stderr);
  }

  void ClearProgress() {
    if (isatty(STDERR_FILENO) != 0) std::fprintf(stderr, "\r\033[K");
  }

  const std::vector<ConformanceCase> cases_;
  const Readers readers_;
  std::atomic<size_t> next_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t ended_threads_ = 0;  // guarded by mutex_, as are the counts while threads run
  int passed_ = 0;
  int failed_ = 0;
};

// What a case of api from_function runs beside each loader: this very binary, as the user's program.
int Serve(const std::string& path) {
  const Result<std::vector<ConformanceCase>> cases = ReadCases(path, "");
  if (!cases.ok()) return Fail(cases.status());
  if (cases->size() != 1) return Fail(InvalidArgument("--serve needs a file with one case"));
  const Status status = ServeCaseFunction(*(*cases)[0].json);
  return status.ok() ? 0 : Fail(status);
}

int RunVerify(const CommandLine& line) {
  if (line.Has("read")) {
    const Status status = PrintEpochOfReplica(*line.Text("read"));
    return status.ok() ? 0 : Fail(status);
  }
  if (line.positional().size() != 1) {
    return Fail(InvalidArgument("verify needs one file of cases, for example tests/conformance/cases.jsonl"));
  }
  if (line.Has("serve")) return Serve(line.positional()[0]);
  const Result<std::optional<int64_t>> jobs = line.Integer("jobs", 1);
  if (!jobs.ok()) return Fail(jobs.status());
  Result<std::vector<ConformanceCase>> cases = ReadCases(line.positional()[0], line.Text("filter").value_or(""));
  if (!cases.ok()) return Fail(cases.status());
  CatchInterrupts();
  const int64_t total = static_cast<int64_t>(cases->size());
  Verification verification(std::move(cases).value(),
                            line.Has("separate") ? Readers::kOneAReplica : Readers::kOneAWorker);
  const int64_t processors = std::max(1u, std::thread::hardware_concurrency());
  verification.Run(std::min(jobs->value_or(processors), std::max<int64_t>(1, total)));
  std::printf("%d passed, %d failed\n", verification.passed(), verification.failed());
  if (total == 0) return Fail(NotFound("no case matches"));
  if (Interrupted() != 0) return 128 + Interrupted();
  return verification.failed() == 0 ? 0 : kExitFailure;
}

}  // namespace

const Command kVerifyCommand = {"verify",
                                "run conformance cases through real loaders, rings and clients",
                                "CASES.jsonl [--filter REGEX] [--jobs N]",
                                kHelp,
                                kFlags,
                                RunVerify};

}  // namespace headrace::cli
