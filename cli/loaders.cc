#include "cli/loaders.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "common/spec/names.h"

namespace headrace::cli {
namespace {

constexpr int kStopTimeoutMs = 2000;

std::string LogFile(const std::string& run_directory) { return run_directory + ".log"; }

// Where a user's own cache is, if the environment names no other (XDG Base Directory Specification).
std::string CacheDirectory() {
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  if (const std::string named = variable(names::kEnvCacheDir); !named.empty()) return named;
  std::string home = variable("XDG_CACHE_HOME");
  if (home.empty()) home = variable("HOME") + "/.cache";
  return home + "/headrace/objects";
}

Result<int> OpenLog(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return ErrnoStatus(errno, "making " + path);
  return fd;
}

}  // namespace

Status WritePlan(const Plan& plan, const std::string& path) {
  errno = 0;
  std::ofstream file(path);
  file << ToJson(plan).dump(2) << "\n";
  file.close();
  return file ? Status() : ErrnoStatus(errno != 0 ? errno : EIO, "writing " + path);
}

Result<std::unique_ptr<LoaderGroup>> LoaderGroup::Start(const Plan& plan, const LoaderOptions& options,
                                                        const std::string& directory) {
  std::unique_ptr<LoaderGroup> group(new LoaderGroup(directory));
  const std::string plan_path = directory + "/" + names::kPlanFile;
  RETURN_IF_ERROR(WritePlan(plan, plan_path));
  const std::string binary = SiblingBinary("headrace-loader");
  for (int64_t w = 0; w < options.workers; ++w) {
    const std::string run_directory = group->RunDirectory(w);
    if (mkdir(run_directory.c_str(), 0700) != 0) return ErrnoStatus(errno, "making " + run_directory);
    const std::string log = LogFile(run_directory);
    ASSIGN_OR_RETURN(const int log_fd, OpenLog(log));
    ProcessOptions process;
    process.argv = {binary};
    process.stdout_fd = log_fd;
    process.stderr_fd = log_fd;
    process.environment = {{names::kEnvPlan, plan_path},
                           {names::kEnvDir, run_directory},
                           {names::kEnvWorkerIndex, std::to_string(w)},
                           {names::kEnvNumWorkers, std::to_string(options.workers)},
                           {names::kEnvReplicasPerWorker, std::to_string(options.replicas_per_worker)},
                           {names::kEnvRunId, options.run_id},
                           {names::kEnvDataDir, options.data_directory},
                           {names::kEnvCoordinator, "unix:" + directory + "/coordinator.sock"},
                           {names::kEnvListen, options.metrics ? "127.0.0.1:0" : ""},
                           {names::kEnvCacheDir, CacheDirectory()},
                           {"HEADRACE_SERVE_ERRORS", "1"}};  // errors reach us as a trainer would see them
    Result<Process> started = Process::Start(process);
    close(log_fd);
    RETURN_IF_ERROR(started.status(), "the loader of worker " + std::to_string(w));
    group->loaders_.push_back(std::move(started).value());
    if (const auto* function = std::get_if<FunctionSource>(&plan.spec.source)) {
      RETURN_IF_ERROR(group->StartFunction(*function, w, options));
    }
  }
  return group;
}

Status LoaderGroup::StartFunction(const FunctionSource& function, int64_t worker, const LoaderOptions& options) {
  const int output_fd = options.function_output_fd;
  const std::string run_directory = RunDirectory(worker);
  int log_fd = -1;
  if (output_fd < 0) {
    ASSIGN_OR_RETURN(log_fd, OpenLog(run_directory + ".function.log"));
  }
  ProcessOptions process;
  process.argv = function.command;
  process.stdout_fd = process.stderr_fd = output_fd < 0 ? log_fd : output_fd;
  process.environment = {{names::kEnvDir, run_directory}, {"PYTHONUNBUFFERED", "1"}};
  if (const auto python_path = PythonPath()) process.environment.emplace_back("PYTHONPATH", *python_path);
  process.directory = options.data_directory;
  Result<Process> started = Process::Start(process);
  if (log_fd >= 0) close(log_fd);
  RETURN_IF_ERROR(started.status(), "spec.source.function.command");
  functions_.push_back(std::move(started).value());
  return {};
}

LoaderGroup::~LoaderGroup() {
  for (Process& loader : loaders_) loader.Signal(SIGTERM);  // all at once, then wait for each
  for (Process& loader : loaders_) loader.Stop(kStopTimeoutMs);
  // They end by themselves when their loaders have.
  for (Process& function : functions_) function.Stop(kStopTimeoutMs);
}

std::string WorkerDirectoryName(int64_t worker) { return "worker-" + std::to_string(worker); }

std::string LoaderGroup::RunDirectory(int64_t worker) const { return directory_ + "/" + WorkerDirectoryName(worker); }

std::string LoaderGroup::Death(int64_t worker) {
  constexpr size_t kTailBytes = 600;
  const std::optional<int> status = loaders_[static_cast<size_t>(worker)].Wait(0);
  if (!status) return "";
  std::stringstream log;
  log << std::ifstream(LogFile(RunDirectory(worker))).rdbuf();
  std::string tail = log.str();
  if (tail.size() > kTailBytes) tail = "..." + tail.substr(tail.size() - kTailBytes);
  while (!tail.empty() && tail.back() == '\n') tail.pop_back();
  return "the loader of worker " + std::to_string(worker) + " ended with status " + std::to_string(*status) + ": " +
         tail;
}

std::string LoaderGroup::FunctionDeath(int64_t worker) {
  const auto w = static_cast<size_t>(worker);
  const std::optional<int> status = w < functions_.size() ? functions_[w].Wait(0) : std::nullopt;
  // Its loader takes the socket away once the function is there: what happens then is the loader's to tell.
  if (!status || access((RunDirectory(worker) + "/" + names::kFunctionSocketFile).c_str(), F_OK) != 0) return "";
  return "spec.source.function.command: the function of worker " + std::to_string(worker) + " ended with status " +
         std::to_string(*status) + " before it called headrace.serve()";
}

}  // namespace headrace::cli
