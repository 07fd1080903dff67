#include "sidecar/loader/function_peer.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "common/ring/handshake.h"
#include "common/spec/names.h"
#include "sidecar/loader/unix_listener.h"

namespace headrace::side {
namespace {

constexpr int kSliceMs = 50;  // between two looks at `stop`

}  // namespace

Result<std::unique_ptr<FunctionPeer>> FunctionPeer::Accept(const std::string& run_dir, int64_t timeout_ms,
                                                           const std::atomic<bool>* stop) {
  const std::string path = run_dir + "/" + names::kFunctionSocketFile;
  ASSIGN_OR_RETURN(const int listener, ListenUnix(path));
  std::unique_ptr<FunctionPeer> peer(new FunctionPeer(path, listener, stop));
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  while (peer->fd_ < 0) {
    if (stop->load()) return Cancelled("asked to stop");
    pollfd ready{listener, POLLIN, 0};
    if (poll(&ready, 1, kSliceMs) > 0) peer->fd_ = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (peer->fd_ < 0 && std::chrono::steady_clock::now() > deadline) {
      return Unavailable("no process has called headrace.serve() within " + std::to_string(timeout_ms / 1000) +
                         " s: see the log of the function's container (or command), or raise " +
                         names::kEnvFunctionTimeout);
    }
  }
  // A loader has one such process. One that comes again, having died, waits for the loader that comes after this; and
  // who started both sees that this one was here (LoaderGroup::FunctionDeath).
  unlink(path.c_str());
  return peer;
}

FunctionPeer::~FunctionPeer() {
  if (fd_ >= 0) close(fd_);
  close(listener_);
  unlink(path_.c_str());
}

Result<ring::FunctionAnswer> FunctionPeer::AskAny(const ring::FunctionRequest& request) {
  const auto gone = [] {
    return Unavailable(
        "its process ended without an error of its own: see the log of the function's container (or "
        "command)");
  };
  if (!ring::SendMessage(fd_, ring::Encode(request), -1).ok()) return gone();
  pollfd ready{fd_, POLLIN, 0};
  while (poll(&ready, 1, kSliceMs) <= 0) {
    if (stop_.load()) return Cancelled("asked to stop");
  }
  int unasked_fd = -1;
  const Result<std::string> answer = ring::ReceiveMessage(fd_, 0, &unasked_fd);
  if (unasked_fd >= 0) close(unasked_fd);
  if (!answer.ok()) return gone();
  auto decoded = ring::DecodeFunctionAnswer(*answer);
  // Cancelled is ours: that the loader was asked to stop.
  if (decoded.status().code() == Code::kCancelled) return Unavailable(decoded.status().message());
  return decoded;
}

Status FunctionPeer::LendRing(int64_t replica, int fd) {
  return ring::SendMessage(fd_, ring::Encode(ring::FunctionRequest(ring::MapRing{replica})), fd);
}

}  // namespace headrace::side
