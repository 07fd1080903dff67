#include "cli/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <map>

extern char** environ;

namespace headrace::cli {
namespace {

std::vector<std::string> MergedEnvironment(const std::vector<std::pair<std::string, std::string>>& added) {
  std::map<std::string, std::string> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    if (equals != std::string::npos) merged[text.substr(0, equals)] = text.substr(equals + 1);
  }
  for (const auto& [name, value] : added) merged[name] = value;
  std::vector<std::string> lines;
  for (const auto& [name, value] : merged) lines.push_back(name + "=" + value);
  return lines;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// In the child, between fork and exec: async-signal-safe calls only.
[[noreturn]] void RunChild(char* const* argv, char* const* envp, const ProcessOptions& options, pid_t parent,
                           int error_fd) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // the parent died before the line above
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_DFL);
  if (options.stdout_fd >= 0) dup2(options.stdout_fd, STDOUT_FILENO);
  if (options.stderr_fd >= 0) dup2(options.stderr_fd, STDERR_FILENO);
  if (options.directory.empty() || chdir(options.directory.c_str()) == 0) execvpe(argv[0], argv, envp);
  const int error = errno;
  [[maybe_unused]] const ssize_t written = write(error_fd, &error, sizeof error);
  _exit(127);
}

int ShellStatus(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

}  // namespace

Result<Process> Process::Start(const ProcessOptions& options) {
  std::vector<std::string> arguments = options.argv;
  std::vector<std::string> environment = MergedEnvironment(options.environment);
  const std::vector<char*> argv = Pointers(arguments);
  const std::vector<char*> envp = Pointers(environment);
  int error_pipe[2];  // closed by a successful exec; else carries errno
  if (pipe2(error_pipe, O_CLOEXEC) != 0) return ErrnoStatus(errno, "pipe2");

  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) RunChild(argv.data(), envp.data(), options, parent, error_pipe[1]);
  const int fork_error = errno;
  close(error_pipe[1]);
  if (pid < 0) {
    close(error_pipe[0]);
    return ErrnoStatus(fork_error, "fork for " + arguments[0]);
  }
  Process process;
  process.pid_ = pid;
  process.pidfd_ = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  int exec_error = 0;
  ssize_t count = 0;
  do {
    count = read(error_pipe[0], &exec_error, sizeof exec_error);
  } while (count < 0 && errno == EINTR);
  close(error_pipe[0]);
  if (count == sizeof exec_error) return ErrnoStatus(exec_error, "starting " + arguments[0]);
  if (process.pidfd_ < 0) return ErrnoStatus(errno, "pidfd_open for " + arguments[0]);
  return process;
}

Process& Process::operator=(Process&& other) noexcept {
  if (this == &other) return *this;
  Stop(0);
  pid_ = std::exchange(other.pid_, -1);
  pidfd_ = std::exchange(other.pidfd_, -1);
  status_ = std::exchange(other.status_, std::nullopt);
  return *this;
}

std::optional<int> Process::Wait(int timeout_ms) {
  if (pid_ < 0 || status_) return status_;
  pollfd ended = {pidfd_, POLLIN, 0};
  if (timeout_ms != 0) {
    while (poll(&ended, 1, timeout_ms) < 0 && errno == EINTR && timeout_ms < 0) {
    }
  }
  int wait_status = 0;
  if (waitpid(pid_, &wait_status, WNOHANG) == pid_) status_ = ShellStatus(wait_status);
  return status_;
}

void Process::Signal(int signal) {
  if (pid_ > 0 && !status_) kill(pid_, signal);
}

int Process::Stop(int timeout_ms) {
  if (pid_ < 0) return 0;
  if (!Wait(0)) {
    if (timeout_ms > 0) {
      Signal(SIGTERM);
      Wait(timeout_ms);
    }
    if (!status_) {
      Signal(SIGKILL);
      int wait_status = 0;
      while (waitpid(pid_, &wait_status, 0) < 0 && errno == EINTR) {
      }
      status_ = ShellStatus(wait_status);
    }
  }
  if (pidfd_ >= 0) close(std::exchange(pidfd_, -1));
  pid_ = -1;
  return *status_;
}

Result<ScratchDirectory> ScratchDirectory::Make(const std::string& prefix) {
  std::string tried;
  for (const std::string& parent : ScratchParents()) {
    std::string path = parent + "/" + prefix + "XXXXXX";
    if (mkdtemp(path.data()) != nullptr) return ScratchDirectory(path);
    tried += (tried.empty() ? "" : ", ") + ErrnoStatus(errno, parent).message();
  }
  return Unavailable("no place for a run directory (set TMPDIR): " + tried);
}

std::vector<std::string> ScratchParents() {
  const char* tmpdir = getenv("TMPDIR");
  return {"/dev/shm", tmpdir != nullptr ? tmpdir : "/tmp"};
}

ScratchDirectory::~ScratchDirectory() {
  if (path_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string SiblingBinary(const std::string& name) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return name;
  const std::filesystem::path sibling = self.parent_path() / name;
  return access(sibling.c_str(), X_OK) == 0 ? sibling.string() : name;
}

std::optional<std::string> PythonPath() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path package = self.parent_path().parent_path() / "python";
  if (error || !std::filesystem::exists(package / "headrace", error)) return std::nullopt;
  const char* own = getenv("PYTHONPATH");
  return (own != nullptr && *own != '\0' ? std::string(own) + ":" : "") + package.string();
}

}  // namespace headrace::cli
