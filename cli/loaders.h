// The loaders of one run as local processes: what a cluster does with sidecars, on this machine.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/process.h"
#include "common/base/status.h"
#include "common/spec/plan.h"

namespace headrace::cli {

struct LoaderOptions {
  int64_t workers = 1;
  int64_t replicas_per_worker = 1;
  std::string data_directory;   // relative paths of the spec resolve against it
  std::string run_id;           // seeds unseeded shuffles
  bool metrics = false;         // serve them on a port of 127.0.0.1, which metrics.addr in each run directory names
  int function_output_fd = -1;  // where the function's processes print to; -1: their logs
};

// The folder of a worker's loader in that of its run.
std::string WorkerDirectoryName(int64_t worker);

// Writes what a loader reads. Errors: of the file system.
Status WritePlan(const Plan& plan, const std::string& path);

// Starts the loaders and stops them, with their run directories, when destroyed. Used by one thread; what tells of one
// worker, by another one in its place, such as that which waits for the worker's batches.
class LoaderGroup {
 public:
  // `directory` must outlive the group and be the group's alone. Does not wait until the rings are there: connecting
  // clients do. Errors: of the file system and of starting a process.
  static Result<std::unique_ptr<LoaderGroup>> Start(const Plan& plan, const LoaderOptions& options,
                                                    const std::string& directory);
  ~LoaderGroup();
  LoaderGroup(const LoaderGroup&) = delete;
  LoaderGroup& operator=(const LoaderGroup&) = delete;

  int64_t workers() const { return static_cast<int64_t>(loaders_.size()); }
  std::string RunDirectory(int64_t worker) const;  // what HEADRACE_DIR is for its trainers
  pid_t pid(int64_t worker) const { return loaders_[static_cast<size_t>(worker)].pid(); }
  // Why worker's loader is not there: its exit status and last log lines. Empty while it runs.
  std::string Death(int64_t worker);
  // Why a loader that does not come waits in vain: its function has ended and never came to it. Empty while that runs
  // or once it came, and without one.
  std::string FunctionDeath(int64_t worker);

 private:
  Status StartFunction(const FunctionSource& function, int64_t worker, const LoaderOptions& options);

  explicit LoaderGroup(std::string directory) : directory_(std::move(directory)) {}
  std::string directory_;
  std::vector<Process> loaders_;
  std::vector<Process> functions_;  // of spec.source.function: one beside each loader
};

}  // namespace headrace::cli
