// Answers trainers' clients on the Unix socket in the run directory: see common/ring/handshake.h.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "common/base/status.h"
#include "common/ring/handshake.h"
#include "sidecar/device/device_ring.h"

namespace headrace::side {

// What clients are told: the run and the rings' descriptors, or why there is none.
struct HandshakeOffer {
  ring::HandshakeReply reply;
  std::vector<int> ring_fds;                          // by replica; owned by the rings, which must outlive the server
  const device::DeviceRings* device_rings = nullptr;  // by replica, or empty; must outlive it, too
};

class HandshakeServer {
 public:
  // Binds `path` (a socket left by a dead loader is replaced) and serves on a thread of its own until destroyed.
  static Result<std::unique_ptr<HandshakeServer>> Start(const std::string& path,
                                                        std::variant<HandshakeOffer, Status> offer);
  ~HandshakeServer();
  HandshakeServer(const HandshakeServer&) = delete;
  HandshakeServer& operator=(const HandshakeServer&) = delete;

 private:
  struct Connection {
    int fd;
    int replica;  // -1: not attached
  };

  HandshakeServer(std::string path, int listener, int wake, std::variant<HandshakeOffer, Status> offer);
  void Serve();
  void Accept();
  // false: the connection is over.
  bool Answer(Connection& connection);
  // Hands a replica's ring out.
  static Status Attach(int socket, const HandshakeOffer& offer, const ring::HandshakeRequest& request);

  const std::string path_;
  const int listener_;
  const int wake_;
  const std::variant<HandshakeOffer, Status> offer_;
  std::vector<Connection> connections_;  // the serving thread's
  std::thread thread_;
};

}  // namespace headrace::side
