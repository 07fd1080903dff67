// The loaders of one run as processes, as pods have them, and their clients in this process.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/spec/names.h"
#include "common/spec/plan.h"
#include "headrace/client.h"
#include "tests/loader/container.h"

namespace headrace::testing {

// A folder of its own, in memory.
class Folder {
 public:
  explicit Folder(const std::string& parent = "/dev/shm") {
    std::string path = parent + "/headrace-test-XXXXXX";
    path_ = mkdtemp(path.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class LoaderRun {
 public:
  // `environment` is what loaders have beside this process's own; `program` is the loader of this build, or another.
  LoaderRun(const std::string& spec, int workers, int replicas, const std::string& run_id = "run",
            std::map<std::string, std::string> environment = {}, Namespaces namespaces = Namespaces::kShared,
            const std::string& program = "headrace-loader")
      : workers_(workers),
        replicas_(replicas),
        run_id_(run_id),
        environment_(std::move(environment)),
        namespaces_(namespaces),
        program_(program) {
    auto parsed = ParseInputSpec(nlohmann::json::parse(spec));
    EXPECT_TRUE(parsed.ok()) << parsed.status().message();
    std::ofstream(folder_.path() + "/plan.json") << ToJson(CompilePlan(std::move(*parsed), "ml/clicks")).dump();
    for (int worker = 0; worker < workers; ++worker) {
      std::filesystem::create_directory(directory(worker));
      pids_.push_back(-1);
      StartLoader(worker);
    }
  }
  ~LoaderRun() {
    for (int worker = 0; worker < workers_; ++worker) Kill(worker, SIGKILL);
  }
  LoaderRun(const LoaderRun&) = delete;
  LoaderRun& operator=(const LoaderRun&) = delete;

  // What the loaders' containers share with their trainers'.
  const std::string& folder() const { return folder_.path(); }
  std::string directory(int worker) const { return folder_.path() + "/" + std::to_string(worker); }

  void StartLoader(int worker) {
    // Beside this test, which is <build>/tests/NAME.
    const std::filesystem::path test = std::filesystem::read_symlink("/proc/self/exe");
    const std::string path = test.parent_path().parent_path() / "bin" / program_;
    pids_[static_cast<size_t>(worker)] = ForkInto(namespaces_, folder_.path());
    if (pids_[static_cast<size_t>(worker)] != 0) return;
    const auto inside = [this](const std::string& there) { return PathInside(namespaces_, folder_.path(), there); };
    setenv(names::kEnvDir, inside(directory(worker)).c_str(), 1);
    setenv(names::kEnvPlan, inside(folder_.path() + "/plan.json").c_str(), 1);
    setenv(names::kEnvNumWorkers, std::to_string(workers_).c_str(), 1);
    setenv(names::kEnvWorkerIndex, std::to_string(worker).c_str(), 1);
    setenv(names::kEnvReplicasPerWorker, std::to_string(replicas_).c_str(), 1);
    setenv(names::kEnvRunId, run_id_.c_str(), 1);
    setenv(names::kEnvCoordinator, ("unix:" + inside(folder_.path() + "/coordinator.sock")).c_str(), 1);
    setenv(names::kEnvServeErrors, "1", 1);
    for (const auto& [name, value] : environment_) setenv(name.c_str(), value.c_str(), 1);
    execl(path.c_str(), path.c_str(), nullptr);
    _exit(127);
  }
  // Ends the loader and waits for it; returns its exit status, or minus the signal.
  int Kill(int worker, int signal) {
    pid_t& pid = pids_[static_cast<size_t>(worker)];
    if (pid <= 0) return 0;
    kill(pid, signal);
    int status = 0;
    waitpid(pid, &status, 0);
    pid = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  const int workers_;
  const int replicas_;
  const std::string run_id_;
  const std::map<std::string, std::string> environment_;
  const Namespaces namespaces_;
  const std::string program_;
  Folder folder_;
  std::vector<pid_t> pids_;
};

// One worker's steps through the C client: the int64 values of each replica's first component.
class Reader {
 public:
  using Step = std::vector<std::vector<int64_t>>;

  explicit Reader(const std::string& directory) {
    headrace_connect_options options{};
    options.size = sizeof(options);
    options.directory = directory.c_str();
    options.timeout_ms = 60000;
    if (headrace_connect(&options, &dataset_) != HEADRACE_OK) error_ = headrace_last_error();
  }
  ~Reader() {
    headrace_iterator_free(iterator_);
    headrace_dataset_free(dataset_);
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  const std::string& error() const { return error_; }
  headrace_dataset* dataset() { return dataset_; }

  void Start(const headrace_position* position = nullptr) {
    if (dataset_ == nullptr) return;
    headrace_iterator_free(std::exchange(iterator_, nullptr));
    const headrace_status status =
        position == nullptr ? headrace_iterator_create(dataset_, HEADRACE_WHOLE_WORKER, &iterator_)
                            : headrace_iterator_create_at(dataset_, HEADRACE_WHOLE_WORKER, position, &iterator_);
    if (status != HEADRACE_OK) error_ = headrace_last_error();
  }

  // The next step; empty at the end of the epoch, and on an error.
  Step Next(int64_t timeout_ms = 60000) {
    if (iterator_ == nullptr) return {};
    std::vector<headrace_batch*> batches(static_cast<size_t>(headrace_iterator_width(iterator_)));
    const headrace_status status = headrace_next(iterator_, timeout_ms, batches.data());
    if (status == HEADRACE_END) return {};
    if (status != HEADRACE_OK) {
      error_ = status == HEADRACE_TIMED_OUT ? "timed out" : headrace_last_error();
      return {};
    }
    Step step;
    for (headrace_batch* batch : batches) {
      headrace_tensor tensor{};
      tensor.size = sizeof(tensor);
      EXPECT_EQ(headrace_batch_tensor(batch, 0, &tensor), HEADRACE_OK);
      const auto* values = static_cast<const int64_t*>(tensor.data);
      step.emplace_back(values, values + tensor.nbytes / 8);
      headrace_batch_free(batch);
    }
    return step;
  }
  std::vector<Step> Rest() {
    std::vector<Step> steps;
    for (Step step = Next(); !step.empty(); step = Next()) steps.push_back(std::move(step));
    return steps;
  }

  headrace_position Position() const {
    headrace_position position{};
    position.size = sizeof(position);
    EXPECT_EQ(headrace_iterator_position(iterator_, &position), HEADRACE_OK);
    return position;
  }

 private:
  headrace_dataset* dataset_ = nullptr;
  headrace_iterator* iterator_ = nullptr;
  std::string error_;
};

}  // namespace headrace::testing
