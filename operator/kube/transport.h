// The one seam to the network: HTTP calls and streams to one API server. Everything above it is ours; what is below
// (the HTTP library, TLS, credentials) is seen by one .cc alone.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "common/base/status.h"

namespace headrace::kube {

struct HttpCall {
  std::string method;  // "GET", "PATCH", ...
  std::string target;  // path and query, already encoded
  std::string content_type = {};
  std::string body = {};
};

struct HttpReply {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

// Thread-safe. No redirect is followed. A call may be sent twice if a kept-alive connection breaks under it, so callers
// make only requests that do no harm when repeated.
class HttpTransport {
 public:
  virtual ~HttpTransport() = default;

  // Blocks for the whole reply, whatever its status. Errors: Unavailable (nothing, or only part of a reply, arrived).
  virtual Result<HttpReply> Send(const HttpCall& call) = 0;

  // Hands the body of a 2xx reply to `on_bytes` piece by piece, on the calling thread, as it arrives; little is
  // buffered (some 100 KiB), so a slow consumer slows the server. Blocks until the stream ends. Returns the reply:
  // without body after a stream, with its body for any other status. Errors: Unavailable if the connection fails or is
  // silent for `idle_timeout`; Cancelled after `stop`; whatever error on_bytes returned, which ends the stream.
  virtual Result<HttpReply> Stream(const HttpCall& call, std::chrono::milliseconds idle_timeout, std::stop_token stop,
                                   const std::function<Status(std::string_view)>& on_bytes) = 0;
};

struct TransportOptions {
  std::string url;         // "https://10.0.0.1:443", or plain http:// (tests, kubectl proxy)
  std::string token_file;  // read again for each request, since tokens rotate; empty: no Authorization
  std::string ca_file;     // read again for each connection; the only authority trusted; required with https
  std::chrono::milliseconds call_timeout{30000};
  size_t max_body_bytes = 256 << 20;
  int threads = 2;  // of the library's pool; the first transport of the process decides
};

// From KUBERNETES_SERVICE_HOST and _PORT and the mounted service account. Errors: NotFound outside a pod.
Result<TransportOptions> InClusterOptions();
// The namespace of the pod that runs this, from its service account. Errors: NotFound.
Result<std::string> InClusterNamespace();

Result<std::unique_ptr<HttpTransport>> MakeTransport(TransportOptions options);

}  // namespace headrace::kube
