#include "sidecar/loader/handshake_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "common/base/log.h"
#include "sidecar/loader/unix_listener.h"

namespace headrace::side {
namespace {

constexpr size_t kMaxConnections = 4096;

}  // namespace

Result<std::unique_ptr<HandshakeServer>> HandshakeServer::Start(const std::string& path,
                                                                std::variant<HandshakeOffer, Status> offer) {
  ASSIGN_OR_RETURN(const int listener, ListenUnix(path));
  const int wake = eventfd(0, EFD_CLOEXEC);
  return std::unique_ptr<HandshakeServer>(new HandshakeServer(path, listener, wake, std::move(offer)));
}

HandshakeServer::HandshakeServer(std::string path, int listener, int wake, std::variant<HandshakeOffer, Status> offer)
    : path_(std::move(path)), listener_(listener), wake_(wake), offer_(std::move(offer)), thread_([this] {
        Serve();
      }) {}

HandshakeServer::~HandshakeServer() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_, &one, sizeof one);
  thread_.join();
  for (const Connection& connection : connections_) close(connection.fd);
  close(listener_);
  close(wake_);
  unlink(path_.c_str());
}

void HandshakeServer::Serve() {
  std::vector<pollfd> polled;
  while (true) {
    polled.clear();
    polled.push_back({wake_, POLLIN, 0});
    polled.push_back({listener_, static_cast<short>(connections_.size() < kMaxConnections ? POLLIN : 0), 0});
    for (const Connection& connection : connections_) polled.push_back({connection.fd, POLLIN, 0});
    if (poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) return;
    if (polled[0].revents != 0) return;
    for (size_t i = 0; i < connections_.size(); ++i) {
      if (polled[i + 2].revents == 0 || Answer(connections_[i])) continue;
      close(connections_[i].fd);
      connections_[i].fd = -1;
    }
    std::erase_if(connections_, [](const Connection& connection) { return connection.fd < 0; });
    if ((polled[1].revents & POLLIN) != 0) Accept();
  }
}

void HandshakeServer::Accept() {
  const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (fd >= 0) connections_.push_back({fd, -1});
}

bool HandshakeServer::Answer(Connection& connection) {
  // Only called when something is there to read: a time-out of 0 does not lose a request.
  int unasked_fd = -1;
  const Result<std::string> request = ring::ReceiveMessage(connection.fd, 0, &unasked_fd);
  if (unasked_fd >= 0) close(unasked_fd);
  if (!request.ok()) return false;
  const auto wanted = ring::DecodeRequest(*request);
  if (!wanted.ok()) return ring::SendMessage(connection.fd, ring::EncodeError(wanted.status()), -1).ok();
  const int replica = wanted->replica;
  if (const auto* error = std::get_if<Status>(&offer_)) {
    return ring::SendMessage(connection.fd, ring::EncodeError(*error), -1).ok();
  }
  const auto& offer = std::get<HandshakeOffer>(offer_);
  const auto refuse = [&](const Status& why) {
    return ring::SendMessage(connection.fd, ring::EncodeError(why), -1).ok();
  };
  const auto replicas = static_cast<int>(offer.ring_fds.size());
  if (replica >= replicas) {
    return refuse(InvalidArgument("replica " + std::to_string(replica) + ": this worker has replicas 0 to " +
                                  std::to_string(replicas - 1) + "; see spec.distribution.replicasPerWorker"));
  }
  if (replica >= 0 && !wanted->device && !offer.reply.device_only.empty()) {
    return refuse(InvalidArgument(offer.reply.device_only));
  }
  const bool taken = std::any_of(connections_.begin(), connections_.end(), [&](const Connection& other) {
    return replica >= 0 && other.fd != connection.fd && other.replica == replica;
  });
  if (taken) {
    return refuse(Conflict("replica " + std::to_string(replica) +
                           " is read by another client of this pod already; each replica has one reader"));
  }
  connection.replica = replica;
  if (replica < 0) return ring::SendMessage(connection.fd, ring::EncodeReply(offer.reply), -1).ok();
  return Attach(connection.fd, offer, *wanted).ok();
}

Status HandshakeServer::Attach(int socket, const HandshakeOffer& offer, const ring::HandshakeRequest& request) {
  log::Info("trainer attached", {{"replica", std::to_string(request.replica)}, {"memory", request.memory}});
  const auto replica = static_cast<size_t>(request.replica);
  std::vector<int> fds = {offer.ring_fds[replica]};
  if (!offer.device_rings->empty()) {
    device::DeviceRing& device_ring = *(*offer.device_rings)[replica];
    // The client before this one has gone: nothing of its doing is still to come.
    device_ring.SetReader(request.device ? device::DeviceRing::Reader::kDevice : device::DeviceRing::Reader::kHost);
    if (request.device) fds.insert(fds.end(), {device_ring.memory_fd(), device_ring.handover_fd()});
  }
  return ring::SendDescriptors(socket, ring::EncodeReply(offer.reply), fds);
}

}  // namespace headrace::side
