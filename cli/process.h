// Child processes and scratch directories that do not outlive the command.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"

namespace headrace::cli {

struct ProcessOptions {
  std::vector<std::string> argv;                                 // argv[0] with a slash, or looked up in PATH
  std::vector<std::pair<std::string, std::string>> environment;  // added to, and winning over, our own
  int stdout_fd = -1;                                            // -1: inherited. Borrowed, only for Start
  int stderr_fd = -1;
  std::string directory;  // to start in; empty: ours
};

// One child, killed by the kernel if the thread that started it dies, and stopped by the destructor.
// Move-only; used by one thread, the one that started it (or one that outlives it).
class Process {
 public:
  // Errors: NotFound and others as exec reports them, naming argv[0].
  static Result<Process> Start(const ProcessOptions& options);
  Process() = default;
  Process(Process&& other) noexcept { *this = std::move(other); }
  Process& operator=(Process&& other) noexcept;
  ~Process() { Stop(0); }

  pid_t pid() const { return pid_; }
  // Readable (for poll) when the child has ended.
  int pidfd() const { return pidfd_; }
  // The exit status as a shell gives it (128 + signal), once the child has ended. timeout_ms -1 waits for ever.
  std::optional<int> Wait(int timeout_ms);
  void Signal(int signal);
  // SIGTERM, then SIGKILL after timeout_ms; returns when the child has ended.
  int Stop(int timeout_ms);

 private:
  pid_t pid_ = -1;
  int pidfd_ = -1;
  std::optional<int> status_;
};

// A directory of its own under /dev/shm, where the rings are memory, else under $TMPDIR or /tmp; removed with all in
// it.
class ScratchDirectory {
 public:
  static Result<ScratchDirectory> Make(const std::string& prefix);
  ScratchDirectory(ScratchDirectory&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  ScratchDirectory& operator=(ScratchDirectory&&) = delete;
  ~ScratchDirectory();

  const std::string& path() const { return path_; }

 private:
  explicit ScratchDirectory(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// PYTHONPATH as it is, then the Python package of the build tree that this binary is in, if it is in one: so a checkout
// that was built is enough for `import headrace`.
std::optional<std::string> PythonPath();

// Where scratch directories are made, in the order in which they are tried.
std::vector<std::string> ScratchParents();

// The path of `name` beside the running binary, else `name` itself, for PATH to resolve.
std::string SiblingBinary(const std::string& name);

}  // namespace headrace::cli
