// Where the parts that need a GPU are built alone: nobody scrapes there (http_server.cc is the counterpart).
#include "common/net/http_server.h"

namespace headrace {

struct HttpServer::State {};

Result<std::unique_ptr<HttpServer>> HttpServer::Start(HttpServerOptions options, HttpHandler) {
  return Unavailable("this build cannot serve HTTP at " + options.address + ":" + std::to_string(options.port) +
                     ": it is of the parts that need a GPU alone; leave HEADRACE_LISTEN out");
}
HttpServer::~HttpServer() = default;
uint16_t HttpServer::port() const { return 0; }

}  // namespace headrace
