// Connecting to a Unix socket in a run directory.
#pragma once

#include <optional>
#include <string>

#include "common/base/status.h"

namespace headrace::client {

// One attempt; the caller owns the descriptor, SOCK_SEQPACKET and non-blocking. Errors: InvalidArgument if the path is
// too long; NotFound if there is no run directory; Unavailable if nobody listens.
Result<int> ConnectUnix(const std::string& directory, const char* file);

// One packet, or nothing after timeout_ms; an empty one where the other side has hung up. *fd is as of
// ring::ReceiveMessage.
Result<std::optional<std::string>> ReceiveWithin(int socket, int timeout_ms, int* fd);

}  // namespace headrace::client
