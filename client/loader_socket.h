// One replica's connection to the loader: made, watched, and made again after the loader's restart.
#pragma once

#include <optional>
#include <string>

#include "common/base/status.h"
#include "common/base/unique_fd.h"
#include "common/ring/handshake.h"

namespace headrace::client {

// Used by one thread at a time; blocks for no longer than it is told.
class LoaderSocket {
 public:
  struct Attachment {
    ring::HandshakeReply reply;
    UniqueFd ring;           // there if a replica was asked for
    UniqueFd device_memory;  // these two if its device ring was, too
    UniqueFd handover;
  };

  // A request for no replica asks without attaching.
  LoaderSocket(std::string directory, ring::HandshakeRequest request);
  ~LoaderSocket();
  LoaderSocket(const LoaderSocket&) = delete;
  LoaderSocket& operator=(const LoaderSocket&) = delete;

  // One attempt, or a further wait of wait_ms on the one under way. Nothing: not yet; last_error() says why, and the
  // caller waits a little before it asks again. Errors: those that asking again cannot change.
  Result<std::optional<Attachment>> Attach(int wait_ms);

  // Whether the loader has hung up since Attach; the socket is then closed.
  bool HungUp();

  const Status& last_error() const { return last_error_; }

 private:
  Status Connect();
  void Close();

  std::string directory_;
  ring::HandshakeRequest request_;
  int fd_ = -1;
  Status last_error_;
};

}  // namespace headrace::client
