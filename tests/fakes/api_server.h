// FakeApi behind a real socket, with the faults of real networks. One thread a connection; plain HTTP/1.1.
// (TLS is covered by the tests of certificates and in the cluster.)
#pragma once

#include <atomic>
#include <list>
#include <mutex>
#include <string>
#include <thread>

#include "tests/fakes/api.h"

namespace headrace::kube {

// What happens to the next requests that arrive.
enum class Fault {
  kNone,
  kRefuse,        // closed before a reply
  kHalfOpen,      // a head, the first piece of the body, then silence
  kReset,         // a reset in the middle of the first piece
  kSlow,          // the reply byte by byte
  kGarbageChunk,  // a chunk size that is no number
  kNegativeChunk,
  kHugeChunk,
  kShortBody,  // less than Content-Length
  kRedirect,   // 302 to /elsewhere
};

class FakeApiServer {
 public:
  explicit FakeApiServer(FakeApi* api);
  ~FakeApiServer();
  FakeApiServer(const FakeApiServer&) = delete;
  FakeApiServer& operator=(const FakeApiServer&) = delete;

  std::string url() const;
  void NextFault(Fault fault, int times = 1);
  // Resets every open connection, as a server that is restarted.
  void DropConnections();
  // A header of the latest request; empty if it had none.
  std::string last_header(const std::string& name) const;
  int connections() const { return connections_; }

 private:
  void Accept();
  void Serve(int socket);
  bool Answer(int socket, const std::string& head, const std::string& body);
  void Watch(int socket, const HttpCall& call, Fault fault);

  FakeApi* const api_;
  int listener_ = -1;
  uint16_t port_ = 0;
  std::atomic<int> connections_ = 0;
  std::stop_source stop_;
  mutable std::mutex mutex_;
  Fault fault_ = Fault::kNone;      // guarded by mutex_
  int faults_left_ = 0;             // guarded by mutex_
  std::string last_head_;           // guarded by mutex_
  std::list<std::thread> threads_;  // guarded by mutex_
  std::list<int> sockets_;          // guarded by mutex_
  std::thread acceptor_;
};

}  // namespace headrace::kube
