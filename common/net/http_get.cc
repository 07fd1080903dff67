#include "common/net/http_get.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>

namespace headrace {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using Tcp = asio::ip::tcp;
using boost::system::error_code;

constexpr uint64_t kMaxBodyBytes = 16 << 20;

// Asynchronous, since only then the stream's deadline counts.
class Get {
 public:
  Get(const std::string& host, const std::string& path) {
    request_.method(http::verb::get);
    request_.target(path);
    request_.version(11);
    request_.set(http::field::host, host);
    request_.set(http::field::connection, "close");
    parser_.body_limit(kMaxBodyBytes);
  }

  error_code Run(const Tcp::resolver::results_type& endpoints, int timeout_ms) {
    stream_.expires_after(std::chrono::milliseconds(timeout_ms));
    stream_.async_connect(endpoints, [this](error_code error, const Tcp::endpoint&) {
      if (!Failed(error)) Write();
    });
    context_.run();
    return error_;
  }
  asio::io_context& context() { return context_; }
  const http::response<http::string_body>& response() const { return parser_.get(); }

 private:
  bool Failed(error_code error) {
    error_ = error;
    return error.failed();
  }
  void Write() {
    http::async_write(stream_, request_, [this](error_code error, size_t) {
      if (!Failed(error)) Read();
    });
  }
  void Read() {
    http::async_read(stream_, buffer_, parser_, [this](error_code error, size_t) { Failed(error); });
  }

  asio::io_context context_;
  beast::tcp_stream stream_{context_};
  http::request<http::empty_body> request_;
  beast::flat_buffer buffer_;
  http::response_parser<http::string_body> parser_;
  error_code error_;
};

}  // namespace

Result<std::string> HttpGet(const std::string& host, uint16_t port, const std::string& path, int timeout_ms) {
  const bool ipv6 = host.find(':') != std::string::npos;
  const std::string place = (ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
  const std::string url = "http://" + place + path;
  try {
    Get get(place, path);
    error_code error;
    const auto endpoints = Tcp::resolver(get.context()).resolve(host, std::to_string(port), error);
    if (!error) error = get.Run(endpoints, timeout_ms);
    if (error) return Unavailable(url + ": " + error.message());
    if (get.response().result() != http::status::ok) {
      return Unavailable(url + ": it answers with status " + std::to_string(get.response().result_int()));
    }
    return get.response().body();
  } catch (const std::exception& exception) {
    return Unavailable(url + ": " + exception.what());
  }
}

}  // namespace headrace
