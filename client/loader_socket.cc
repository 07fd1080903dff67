#include "client/loader_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/spec/names.h"

namespace headrace::client {

LoaderSocket::LoaderSocket(std::string directory, int replica) : directory_(std::move(directory)), replica_(replica) {}

LoaderSocket::~LoaderSocket() { Close(); }

void LoaderSocket::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

Status LoaderSocket::Connect() {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = directory_ + "/" + names::kSocketFile;
  if (path.size() >= sizeof(address.sun_path)) {
    return InvalidArgument("run directory '" + directory_ + "' is too long: the path of a socket has at most " +
                           std::to_string(sizeof(address.sun_path) - 1) + " characters");
  }
  struct stat directory {};
  if (stat(directory_.c_str(), &directory) != 0 && errno == ENOENT) {
    return NotFound("run directory '" + directory_ +
                    "' does not exist: give the pod the label headrace.dev/input, or set HEADRACE_DIR to the directory "
                    "of a loader");
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  fd_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd_ < 0) return ErrnoStatus(errno, "making a socket");
  if (connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    const int error = errno;
    Close();
    return Unavailable("connecting to the loader at " + path + ": " + std::strerror(error));
  }
  Status sent = ring::SendMessage(fd_, ring::EncodeRequest(replica_), -1);
  if (!sent.ok()) Close();
  return sent;
}

Result<std::optional<LoaderSocket::Attachment>> LoaderSocket::Attach(int wait_ms) {
  auto not_yet = [this](Status why) -> Result<std::optional<Attachment>> {
    if (!Retryable(why.code())) return why;
    last_error_ = std::move(why);
    return std::optional<Attachment>();
  };
  if (fd_ < 0) {
    Status connected = Connect();
    if (!connected.ok()) return not_yet(std::move(connected));
  }
  pollfd ready{fd_, POLLIN, 0};
  if (poll(&ready, 1, wait_ms) <= 0) {
    return not_yet(Unavailable("the loader of " + directory_ + " does not answer"));
  }
  Attachment attachment;
  auto text = ring::ReceiveMessage(fd_, 0, &attachment.ring_fd);
  if (!text.ok()) {
    Close();
    return not_yet(text.status());
  }
  auto reply = ring::DecodeReply(*text);
  Status status = reply.status();
  if (status.ok() && replica_ >= 0 && attachment.ring_fd < 0) {
    status = Internal("the loader of " + directory_ + " sent no ring for replica " + std::to_string(replica_));
  }
  if (!status.ok()) {
    if (attachment.ring_fd >= 0) close(attachment.ring_fd);
    Close();
    return not_yet(std::move(status));
  }
  attachment.reply = std::move(*reply);
  return std::optional<Attachment>(std::move(attachment));
}

bool LoaderSocket::HungUp() {
  if (fd_ < 0) return true;
  pollfd state{fd_, POLLIN | POLLRDHUP, 0};
  if (poll(&state, 1, 0) <= 0) return false;
  if ((state.revents & (POLLHUP | POLLRDHUP | POLLERR)) == 0) return false;
  Close();
  return true;
}

}  // namespace headrace::client
