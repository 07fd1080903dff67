// One plain HTTP GET, for reading metrics.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/status.h"

namespace headrace {

// The body of `path` at host:port; `host` is a name or an address, IPv6 without brackets. Blocks, for timeout_ms at
// the most, but for the time that a name server takes. Any thread. Errors: Unavailable, naming the URL: no connection,
// no answer in time, an answer other than 200 or of more than 16 MiB.
Result<std::string> HttpGet(const std::string& host, uint16_t port, const std::string& path, int timeout_ms);

}  // namespace headrace
