// A request for something small, such as credentials, and its reply.
#pragma once

#include "sidecar/remote/transfers.h"

namespace headrace::side {

// Sends it, by the same policy as every other, and returns the last attempt's reply. Blocks.
Reply SendSmall(Transfers* transfers, const Request& request);

// "status 404: Not Found", or why no reply came: the first line of it, for a message. REQUIRES: the reply holds no
// secret, as those of failed requests do not.
std::string WhyFailed(const Reply& reply);

}  // namespace headrace::side
