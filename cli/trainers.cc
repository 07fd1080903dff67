#include "cli/trainers.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "cli/interrupt.h"
#include "cli/process.h"
#include "common/spec/names.h"

namespace headrace::cli {
namespace {

constexpr int kStopTimeoutMs = 5000;
constexpr int kPollMs = 200;  // how soon an interrupt that came between two polls is seen

// Splits one stream of a trainer into lines and writes them with a prefix. Owns the pipe's reading end.
class PrefixedOutput {
 public:
  PrefixedOutput(int fd, std::FILE* out, std::string prefix) : fd_(fd), out_(out), prefix_(std::move(prefix)) {}

  int fd() const { return fd_; }

  // Call when fd is readable.
  void Read() {
    char buffer[1 << 14];
    const ssize_t count = read(fd_, buffer, sizeof buffer);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (count <= 0) return Close();
    line_.append(buffer, static_cast<size_t>(count));
    size_t start = 0;
    for (size_t end = line_.find('\n'); end != std::string::npos; end = line_.find('\n', start)) {
      Write(line_.substr(start, end - start));
      start = end + 1;
    }
    line_.erase(0, start);
    std::fflush(out_);
  }

  void Close() {
    if (fd_ < 0) return;
    if (!line_.empty()) Write(line_);
    line_.clear();
    std::fflush(out_);
    close(fd_);
    fd_ = -1;
  }

 private:
  void Write(const std::string& line) const { std::fprintf(out_, "%s%s\n", prefix_.c_str(), line.c_str()); }

  int fd_;
  std::FILE* out_;
  std::string prefix_;
  std::string line_;
};

// A port that is free now; the trainer of worker 0 may listen there.
Result<int> FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return ErrnoStatus(errno, "socket");
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  const bool bound = bind(fd, reinterpret_cast<sockaddr*>(&address), length) == 0 &&
                     getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0;
  const int error = errno;
  close(fd);
  if (!bound) return ErrnoStatus(error, "looking for a free port on 127.0.0.1");
  return static_cast<int>(ntohs(address.sin_port));
}

class Trainers {
 public:
  Status Start(const std::vector<std::string>& command, const LoaderGroup& loaders) {
    ASSIGN_OR_RETURN(const int port, FreePort());
    const int64_t workers = loaders.workers();
    for (int64_t w = 0; w < workers; ++w) {
      ProcessOptions options;
      options.argv = command;
      options.environment = {{names::kEnvDir, loaders.RunDirectory(w)},
                             {names::kEnvWorkerIndex, std::to_string(w)},
                             {names::kEnvNumWorkers, std::to_string(workers)},
                             {"MASTER_ADDR", "127.0.0.1"},
                             {"MASTER_PORT", std::to_string(port)},
                             {"RANK", std::to_string(w)},
                             {"WORLD_SIZE", std::to_string(workers)}};
      if (getenv("PYTHONUNBUFFERED") == nullptr) options.environment.emplace_back("PYTHONUNBUFFERED", "1");
      if (const auto python_path = PythonPath()) options.environment.emplace_back("PYTHONPATH", *python_path);
      RETURN_IF_ERROR(workers == 1 ? StartOne(options) : StartPiped(&options, w));
    }
    return Status();
  }

  int Run() {
    while (std::any_of(processes_.begin(), processes_.end(), [](Process& p) { return !p.Wait(0); })) {
      PollOnce();
      for (Process& process : processes_) {
        const std::optional<int> status = process.Wait(0);
        if (status && *status != 0 && first_failure_ == 0) {
          first_failure_ = *status;
          StopAll();
        }
      }
      if (Interrupted() != 0) {
        StopAll();
        first_failure_ = 128 + Interrupted();
      }
    }
    for (PrefixedOutput& output : outputs_) Drain(&output);
    return first_failure_;
  }

 private:
  Status StartOne(const ProcessOptions& options) {
    ASSIGN_OR_RETURN(Process process, Process::Start(options));
    processes_.push_back(std::move(process));
    return Status();
  }

  Status StartPiped(ProcessOptions* options, int64_t worker) {
    const std::string prefix = "[worker " + std::to_string(worker) + "] ";
    int writing_ends[2];
    for (int stream = 0; stream < 2; ++stream) {
      int ends[2];
      if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "pipe2");
      outputs_.emplace_back(ends[0], stream == 0 ? stdout : stderr, prefix);
      writing_ends[stream] = ends[1];
    }
    options->stdout_fd = writing_ends[0];
    options->stderr_fd = writing_ends[1];
    const Status started = StartOne(*options);
    close(writing_ends[0]);
    close(writing_ends[1]);
    return started;
  }

  // Waits for output or for a process to end.
  void PollOnce() {
    std::vector<pollfd> fds;
    std::vector<PrefixedOutput*> outputs;
    for (PrefixedOutput& output : outputs_) {
      if (output.fd() < 0) continue;
      fds.push_back({output.fd(), POLLIN, 0});
      outputs.push_back(&output);
    }
    for (Process& process : processes_) {
      if (!process.Wait(0)) fds.push_back({process.pidfd(), POLLIN, 0});
    }
    if (poll(fds.data(), fds.size(), kPollMs) <= 0) return;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (fds[i].revents != 0) outputs[i]->Read();
    }
  }

  void StopAll() {
    for (Process& process : processes_) process.Signal(SIGTERM);
    for (Process& process : processes_) {
      if (!process.Wait(kStopTimeoutMs)) process.Signal(SIGKILL);
    }
    for (Process& process : processes_) process.Wait(-1);
  }

  // What is left in the pipe; a grandchild that still holds it open must not keep us.
  static void Drain(PrefixedOutput* output) {
    while (output->fd() >= 0) {
      pollfd readable = {output->fd(), POLLIN, 0};
      if (poll(&readable, 1, 0) <= 0) return output->Close();
      output->Read();
    }
  }

  std::vector<Process> processes_;
  std::vector<PrefixedOutput> outputs_;
  int first_failure_ = 0;
};

}  // namespace

Result<int> RunTrainers(const std::vector<std::string>& command, const LoaderGroup& loaders) {
  Trainers trainers;
  RETURN_IF_ERROR(trainers.Start(command, loaders));
  return trainers.Run();
}

}  // namespace headrace::cli
