#include "client/loader_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/unix_connect.h"
#include "common/spec/names.h"

namespace headrace::client {

LoaderSocket::LoaderSocket(std::string directory, ring::HandshakeRequest request)
    : directory_(std::move(directory)), request_(std::move(request)) {}

LoaderSocket::~LoaderSocket() { Close(); }

void LoaderSocket::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

Status LoaderSocket::Connect() {
  ASSIGN_OR_RETURN(fd_, ConnectUnix(directory_, names::kSocketFile));
  Status sent = ring::SendMessage(fd_, ring::EncodeRequest(request_), -1);
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
  int fds[ring::kMaxDescriptors];
  auto text = ring::ReceiveDescriptors(fd_, 0, fds);
  Attachment attachment{{}, UniqueFd(fds[0]), UniqueFd(fds[1]), UniqueFd(fds[2])};
  if (!text.ok()) {
    Close();
    return not_yet(text.status());
  }
  auto reply = ring::DecodeReply(*text);
  Status status = reply.status();
  if (status.ok() && request_.replica >= 0 && !attachment.ring.is_open()) {
    status = Internal("the loader of " + directory_ + " sent no ring for replica " + std::to_string(request_.replica));
  }
  // One that came back may find less than the one before it.
  const bool has_device_ring =
      status.ok() && attachment.handover.is_open() && request_.replica < static_cast<int>(reply->device_rings.size());
  if (status.ok() && request_.device && !has_device_ring) {
    status = NotFound("the loader of " + directory_ + " has no ring in GPU memory any more (" + reply->memory_reason +
                      "): connect again");
  }
  if (!status.ok()) {
    Close();
    // What the loader itself says is final, but for a client before us that may be about to go.
    if (status.code() != Code::kConflict) return status;
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
