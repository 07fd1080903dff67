// A small HTTP/1.1 server on Boost.Beast for admission reviews, probes and metrics; plain or TLS.
//
// Bounded everywhere, since any pod may reach it: header and body limits, handshake/read/write timers, a cap on
// connections and on the memory of their requests, at which those go whose peers were awaited longest (connections.h).
// One malformed request costs its own connection, never the process.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/base/status.h"

namespace headrace {

struct HttpRequest {
  std::string method;  // "GET", "POST", ...
  std::string path;    // without the query
  std::string query;   // after '?', undecoded
  std::string body;
  std::string authorization = {};  // the header's value: a credential, so never logged
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

// Called on a server thread, for several connections at once. An exception becomes a 500 with no detail.
using HttpHandler = std::function<HttpResponse(const HttpRequest&)>;

struct TlsKeyPair {
  std::string certificate_pem;  // leaf first
  std::string private_key_pem;
};

struct HttpServerOptions {
  std::string address = "0.0.0.0";
  uint16_t port = 0;  // 0: the kernel chooses; see port()
  int threads = 1;
  int max_connections = 256;
  uint64_t max_body_bytes = 4 << 20;
  uint64_t max_bodies_bytes = 64 << 20;  // of all requests at a time
  int timeout_ms = 10000;                // for each handshake, request read and response write
  // Between the requests of a connection; 0: timeout_ms. Longer than what clients that keep connections keep them, so
  // that it is they who close.
  int idle_timeout_ms = 0;
  // Null: plain HTTP. Asked at each new connection, so a rotated certificate serves without a restart.
  // Called on server threads.
  std::function<std::shared_ptr<const TlsKeyPair>()> tls = {};
};

class HttpServer {
 public:
  // Binds and serves until destroyed. Errors: Unavailable with address and port if it cannot bind.
  static Result<std::unique_ptr<HttpServer>> Start(HttpServerOptions options, HttpHandler handler);
  // Stops accepting, closes connections, joins the threads.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  uint16_t port() const;

 private:
  struct State;
  explicit HttpServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace headrace
