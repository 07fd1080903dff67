// One io_context, `threads` threads, one strand a connection. TLS and plain connections share one session template.
#include "common/net/http_server.h"

#include <atomic>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <chrono>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "common/base/log.h"
#include "common/net/connections.h"

namespace headrace {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
namespace ssl = asio::ssl;
using Tcp = asio::ip::tcp;
using boost::system::error_code;

constexpr uint32_t kMaxHeaderBytes = 16 << 10;
constexpr size_t kMaxBufferBytes = 2 * kMaxHeaderBytes;  // what is read at a time, and kept while a connection idles
// How long the acceptor rests after an error such as EMFILE: long enough not to spin, short for a prober.
constexpr auto kAcceptRest = std::chrono::milliseconds(100);

bool Matches(const error_code& error, http::error expected) { return error == make_error_code(expected); }

// The status for a request that could not be parsed; 0: the peer left or timed out, so nobody waits for an answer.
int StatusOfParseError(const error_code& error) {
  if (Matches(error, http::error::body_limit)) return 413;
  if (Matches(error, http::error::header_limit)) return 431;
  if (Matches(error, http::error::end_of_stream) || Matches(error, http::error::partial_message)) return 0;
  return error.category() == make_error_code(http::error::bad_method).category() ? 400 : 0;
}

}  // namespace

// REQUIRES: everything that sessions touch is declared above `context`, which destroys the last sessions.
struct HttpServer::State {
  State(HttpServerOptions opts, HttpHandler h) : options(std::move(opts)), handler(std::move(h)) {}

  // A thread's body: an exception (no memory) costs one connection, not the thread.
  void Run();
  void Accept();
  void OnAccept(error_code error, Tcp::socket socket);
  // The TLS context for the next connection, rebuilt when the key pair changed; null if there is none yet.
  std::shared_ptr<ssl::context> TlsContext();
  HttpResponse Handle(http::request<http::string_body> message);

  const HttpServerOptions options;
  const HttpHandler handler;
  uint16_t port = 0;

  std::atomic<bool> stopping = false;
  Connections connections{static_cast<size_t>(options.max_connections), options.max_bodies_bytes, [this] {
                            if (!stopping) asio::post(accept_strand, [this] { Accept(); });
                          }};
  std::mutex mutex;
  std::shared_ptr<const TlsKeyPair> tls_source;  // guarded by mutex: what tls_context was built from
  std::shared_ptr<ssl::context> tls_context;     // guarded by mutex

  asio::io_context context;
  asio::strand<asio::io_context::executor_type> accept_strand{asio::make_strand(context)};
  Tcp::acceptor acceptor{accept_strand};
  asio::steady_timer rest{accept_strand};
  std::vector<std::thread> threads;
};

namespace {

// One connection, kept alive by its pending operation. All calls on the socket's strand.
template <typename Stream, typename Server>
class Session : public std::enable_shared_from_this<Session<Stream, Server>> {
 public:
  // `tls` (may be null) is what `stream` was made with: it must outlive the stream.
  Session(Server& server, std::shared_ptr<ssl::context> tls, Stream stream)
      : server_(server), tls_(std::move(tls)), stream_(std::move(stream)) {}
  ~Session() {
    if (place_) server_.connections.Leave(*place_);
  }

  void Run() {
    place_ = server_.connections.Enter([weak = this->weak_from_this(), executor = stream_.get_executor()] {
      asio::post(executor, [weak] {
        if (const auto self = weak.lock()) beast::get_lowest_layer(self->stream_).close();
      });
    });
    asio::dispatch(stream_.get_executor(), [self = this->shared_from_this()] { self->Start(); });
  }

 private:
  static constexpr bool kTls = !std::is_same_v<Stream, beast::tcp_stream>;

  void Start() {
    if constexpr (kTls) {
      Arm();
      stream_.async_handshake(ssl::stream_base::server, [self = this->shared_from_this()](error_code error) {
        if (!error) self->Read();
      });
    } else {
      Read();
    }
  }

  // One deadline for the whole next operation, however slowly its bytes drip in.
  void Arm() { Arm(server_.options.timeout_ms); }
  void Arm(int timeout_ms) { beast::get_lowest_layer(stream_).expires_after(std::chrono::milliseconds(timeout_ms)); }

  // Waits for the first bytes of the connection's next request.
  void Idle() {
    const HttpServerOptions& options = server_.options;
    if (buffer_.size() > 0 || options.idle_timeout_ms <= options.timeout_ms) return Read();
    Arm(options.idle_timeout_ms);
    stream_.async_read_some(buffer_.prepare(4096), [self = this->shared_from_this()](error_code error, size_t n) {
      if (error) return self->Close();
      self->buffer_.commit(n);
      self->Read();
    });
  }

  void Read() {
    parser_.emplace();
    parser_->header_limit(kMaxHeaderBytes);
    parser_->body_limit(server_.options.max_body_bytes);
    Arm();
    server_.connections.Await(*place_);
    http::async_read_header(stream_, buffer_, *parser_, [self = this->shared_from_this()](error_code error, size_t) {
      if (error) return self->Failed(error);
      self->ReadBody();
    });
  }

  void ReadBody() {
    const auto length = parser_->content_length();
    const uint64_t bytes = length ? *length : parser_->chunked() ? server_.options.max_body_bytes : 0;
    if (!server_.connections.Take(*place_, bytes)) return Refuse(503, "too many large requests at a time");
    http::async_read(stream_, buffer_, *parser_, [self = this->shared_from_this()](error_code error, size_t) {
      if (error) return self->Failed(error);
      self->Answer();
    });
  }

  void Failed(const error_code& error) {
    if (const int status = StatusOfParseError(error); status != 0) return Refuse(status, error.message());
    Close();
  }

  void Answer() {
    http::request<http::string_body> message = parser_->release();
    const unsigned version = message.version();
    const bool keep_alive = message.keep_alive();
    server_.connections.Hold(*place_);
    HttpResponse answer = server_.Handle(std::move(message));
    Write(std::move(answer), version, keep_alive);
  }

  void Refuse(int status, const std::string& why) { Write({.status = status, .body = why + "\n"}, 11, false); }

  void Write(HttpResponse answer, unsigned version, bool keep_alive) {
    response_ = {};
    response_.version(version);
    response_.result(static_cast<unsigned>(answer.status));
    response_.set(http::field::content_type, answer.content_type);
    response_.body() = std::move(answer.body);
    response_.keep_alive(keep_alive);
    response_.prepare_payload();
    Arm();
    server_.connections.Await(*place_);
    http::async_write(stream_, response_, [self = this->shared_from_this()](error_code error, size_t) {
      if (error || !self->response_.keep_alive()) return self->Close();
      self->Idle();
    });
  }

  void Close() {
    if constexpr (kTls) {
      Arm();
      stream_.async_shutdown([self = this->shared_from_this()](error_code) {});
    } else {
      error_code ignored;
      stream_.socket().shutdown(Tcp::socket::shutdown_send, ignored);
    }
  }

  Server& server_;
  const std::shared_ptr<ssl::context> tls_;
  Stream stream_;
  std::optional<Connections::Place> place_;
  beast::flat_buffer buffer_{kMaxBufferBytes};
  std::optional<http::request_parser<http::string_body>> parser_;
  http::response<http::string_body> response_;
};

std::shared_ptr<ssl::context> MakeTlsContext(const TlsKeyPair& pair) {
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  context->set_options(ssl::context::default_workarounds | ssl::context::no_tlsv1 | ssl::context::no_tlsv1_1);
  context->use_certificate_chain(asio::buffer(pair.certificate_pem));
  context->use_private_key(asio::buffer(pair.private_key_pem), ssl::context::pem);
  // Peers are many and cost little: no sessions are kept for them (tickets are enough), nor buffers while they idle.
  SSL_CTX_set_session_cache_mode(context->native_handle(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context->native_handle(), SSL_MODE_RELEASE_BUFFERS);
  return context;
}

}  // namespace

std::shared_ptr<ssl::context> HttpServer::State::TlsContext() {
  const std::shared_ptr<const TlsKeyPair> source = options.tls();
  const std::lock_guard lock(mutex);
  if (source == tls_source) return tls_context;
  try {
    tls_context = source ? MakeTlsContext(*source) : nullptr;
    tls_source = source;
  } catch (const std::exception& error) {  // the last good pair goes on serving
    log::Error("TLS key pair is not usable", {{"error", error.what()}});
  }
  return tls_context;
}

void HttpServer::State::Run() {
  for (;;) {
    try {
      context.run();
      return;
    } catch (const std::exception& error) {
      log::Error("HTTP connection failed", {{"error", error.what()}});
    }
  }
}

void HttpServer::State::Accept() {
  acceptor.async_accept(asio::make_strand(context),
                        [this](error_code error, Tcp::socket socket) { OnAccept(error, std::move(socket)); });
}

void HttpServer::State::OnAccept(error_code error, Tcp::socket socket) {
  if (stopping) return;
  if (error) {  // EMFILE and its like pass
    rest.expires_after(kAcceptRest);
    rest.async_wait([this](error_code) {
      if (!stopping) Accept();
    });
    return;
  }
  error_code ignored;
  socket.set_option(Tcp::no_delay(true), ignored);
  if (options.tls) {
    if (auto tls = TlsContext()) {
      beast::ssl_stream<beast::tcp_stream> stream(beast::tcp_stream(std::move(socket)), *tls);
      std::make_shared<Session<decltype(stream), State>>(*this, std::move(tls), std::move(stream))->Run();
    } else {
      socket.close(ignored);
    }
  } else {
    std::make_shared<Session<beast::tcp_stream, State>>(*this, nullptr, beast::tcp_stream(std::move(socket)))->Run();
  }
  if (connections.HasRoom()) Accept();
}

HttpResponse HttpServer::State::Handle(http::request<http::string_body> message) {
  HttpRequest request;
  request.method = std::string(message.method_string());
  const std::string target(message.target());
  const size_t mark = target.find('?');
  request.path = target.substr(0, mark);
  if (mark != std::string::npos) request.query = target.substr(mark + 1);
  request.authorization = std::string(message[http::field::authorization]);
  request.body = std::move(message.body());
  try {
    return handler(request);
  } catch (const std::exception& error) {
    log::Error("HTTP handler failed", {{"path", request.path}, {"error", error.what()}});
  } catch (...) {
    log::Error("HTTP handler failed", {{"path", request.path}});
  }
  return {.status = 500, .body = "internal error\n"};
}

HttpServer::HttpServer(std::unique_ptr<State> state) : state_(std::move(state)) {}

HttpServer::~HttpServer() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->context.stop();
  for (std::thread& thread : state_->threads) thread.join();
}

Result<std::unique_ptr<HttpServer>> HttpServer::Start(HttpServerOptions options, HttpHandler handler) {
  auto state = std::make_unique<State>(std::move(options), std::move(handler));
  const std::string where = state->options.address + ":" + std::to_string(state->options.port);
  error_code error;
  const asio::ip::address address = asio::ip::make_address(state->options.address, error);
  if (error) return InvalidArgument("listen address '" + where + "': " + error.message() + "; use a numeric address");
  Tcp::acceptor& acceptor = state->acceptor;
  const Tcp::endpoint endpoint(address, state->options.port);
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(Tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) return Unavailable("cannot listen on " + where + ": " + error.message());
  state->port = acceptor.local_endpoint().port();
  state->Accept();
  for (int i = 0; i < std::max(1, state->options.threads); ++i)
    state->threads.emplace_back([raw = state.get()] { raw->Run(); });
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(state)));
}

uint16_t HttpServer::port() const { return state_->port; }

}  // namespace headrace
