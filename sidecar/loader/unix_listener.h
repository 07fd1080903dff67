// A listening Unix socket in the run directory, which other containers of the pod connect to.
#pragma once

#include <string>

#include "common/base/status.h"

namespace headrace::side {

// Binds `path`, in place of a socket that a dead loader left there. SOCK_SEQPACKET, non-blocking. The caller closes it
// and removes the path. Errors: InvalidArgument if the path is too long; those of the system.
Result<int> ListenUnix(const std::string& path);

}  // namespace headrace::side
