// HttpTransport on cpprestsdk, used only as a client. Its traps, and what is done about each:
//   one idle timeout per http_client, 30 s   calls share a client; each stream has its own, with its own timeout
//   dropped connections stay in the pool      the pool is replaced after a failure; one more try, except for POST
//   redirects copy Authorization             none are followed
//   unbounded response buffers               own stream buffers, bounded
//   chunk sizes are parsed as signed int     a piece larger than kMaxPieceBytes ends the stream
//   a pool of 40 threads                     initialised first, small; no continuation blocks
//   the system's authorities are trusted     the store is replaced by one with the given file only
//   ... and read for each connection, 40 ms  they are said to be in an empty file
#include <cpprest/astreambuf.h>
#include <cpprest/http_client.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <pplx/threadpool.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <optional>
#include <sstream>

#include "operator/kube/transport.h"

namespace headrace::kube {
namespace {

namespace http = web::http;
using http::client::http_client;
using http::client::http_client_config;

constexpr char kServiceAccount[] = "/var/run/secrets/kubernetes.io/serviceaccount/";
constexpr size_t kMaxPieceBytes = 64 << 20;
constexpr size_t kMostAhead = 128 << 10;  // of a stream, before the library waits for the reader

Result<std::string> ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  if (!in || !(text << in.rdbuf())) return NotFound("cannot read " + path);
  return text.str();
}

std::string Trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.pop_back();
  return text;
}

// A write-only stream buffer: what the library needs, with the one decision (where bytes go) left to Consume.
class SinkBuffer : public concurrency::streams::details::streambuf_state_manager<uint8_t> {
 public:
  SinkBuffer() : streambuf_state_manager(std::ios_base::out) {}

 protected:
  // `bytes` stay valid until the task is done.
  virtual pplx::task<size_t> Consume(const uint8_t* bytes, size_t count) = 0;

 private:
  bool can_seek() const override { return false; }
  bool has_size() const override { return false; }
  size_t buffer_size(std::ios_base::openmode) const override { return 0; }
  void set_buffer_size(size_t, std::ios_base::openmode) override {}
  size_t in_avail() const override { return 0; }
  pos_type getpos(std::ios_base::openmode) const override { return static_cast<pos_type>(traits::eof()); }
  pos_type seekpos(pos_type, std::ios_base::openmode) override { return static_cast<pos_type>(traits::eof()); }
  pos_type seekoff(off_type, std::ios_base::seekdir, std::ios_base::openmode) override {
    return static_cast<pos_type>(traits::eof());
  }
  bool acquire(uint8_t*& ptr, size_t& count) override {
    ptr = nullptr;
    count = 0;
    return false;
  }
  void release(uint8_t*, size_t) override {}
  pplx::task<int_type> _putc(uint8_t byte) override {
    auto copy = std::make_shared<uint8_t>(byte);
    return Consume(copy.get(), 1).then([copy](size_t) { return static_cast<int_type>(*copy); });
  }
  pplx::task<size_t> _putn(const uint8_t* ptr, size_t count) override {
    if (count > kMaxPieceBytes)
      return pplx::task_from_exception<size_t>(std::runtime_error("a chunk of " + std::to_string(count) + " bytes"));
    return Consume(ptr, count);
  }
  pplx::task<int_type> _bumpc() override { return pplx::task_from_result<int_type>(traits::eof()); }
  int_type _sbumpc() override { return traits::eof(); }
  pplx::task<int_type> _getc() override { return pplx::task_from_result<int_type>(traits::eof()); }
  int_type _sgetc() override { return traits::eof(); }
  pplx::task<int_type> _nextc() override { return pplx::task_from_result<int_type>(traits::eof()); }
  pplx::task<int_type> _ungetc() override { return pplx::task_from_result<int_type>(traits::eof()); }
  pplx::task<size_t> _getn(uint8_t*, size_t) override { return pplx::task_from_result<size_t>(0); }
  size_t _scopy(uint8_t*, size_t) override { return 0; }
  pplx::task<bool> _sync() override { return pplx::task_from_result(true); }
  uint8_t* _alloc(size_t) override { return nullptr; }
  void _commit(size_t) override {}
};

// Collects a whole body, up to a limit. Read it once the body's task is done.
class BodyBuffer : public SinkBuffer {
 public:
  explicit BodyBuffer(size_t limit) : limit_(limit) {}
  std::string Take() { return std::move(body_); }

 private:
  pplx::task<size_t> Consume(const uint8_t* bytes, size_t count) override {
    if (body_.size() + count > limit_)
      return pplx::task_from_exception<size_t>(
          std::runtime_error("the reply is larger than " + std::to_string(limit_) + " bytes"));
    body_.append(reinterpret_cast<const char*>(bytes), count);
    return pplx::task_from_result(count);
  }
  const size_t limit_;
  std::string body_;
};

// Where the pool's threads leave bytes for the thread that reads the stream, who takes all that there is at a time: the
// API server sends each event of a watch as a chunk by itself, and to change threads for each takes longer than to read
// it.
class Pipe : public SinkBuffer {
 public:
  struct Arrival {
    std::string bytes;
    bool head = false;  // the status is known
    bool ended = false;
    std::string error;  // with ended: why; empty for a clean end
  };

  void OnHead() {
    const std::lock_guard lock(mutex_);
    head_ = true;
    changed_.notify_all();
  }
  void OnEnd(std::string error) {
    const std::lock_guard lock(mutex_);
    if (!ended_) error_ = std::move(error);
    ended_ = true;
    changed_.notify_all();
  }
  // The reader leaves: whoever brings bytes from now on is refused.
  void Leave() {
    std::optional<Held> held;
    {
      const std::lock_guard lock(mutex_);
      left_ = true;
      held.swap(held_);
    }
    if (held) held->done.set_exception(std::runtime_error(kLeft));
  }
  // Blocks until there is news. Bytes are given only after the head.
  Arrival Next(const std::stop_token& stop, bool head_seen) {
    Arrival arrival;
    std::optional<Held> held;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, stop, [&] { return ended_ || (head_ && (!head_seen || !bytes_.empty())); });
      arrival.head = head_;
      arrival.ended = ended_ && bytes_.empty();
      if (arrival.ended) arrival.error = error_;
      if (head_seen) {
        arrival.bytes.swap(bytes_);
        held.swap(held_);
      }
    }
    if (held) held->done.set(held->count);  // outside the lock: the library may bring the next piece from inside
    return arrival;
  }

 private:
  // A piece that is in bytes_, and of whose bringing the library hears only when it was taken.
  struct Held {
    pplx::task_completion_event<size_t> done;
    size_t count;
  };
  static constexpr char kLeft[] = "the reader left";

  pplx::task<size_t> Consume(const uint8_t* bytes, size_t count) override {
    const std::lock_guard lock(mutex_);
    if (left_) return pplx::task_from_exception<size_t>(std::runtime_error(kLeft));
    if (bytes_.empty()) changed_.notify_all();
    bytes_.append(reinterpret_cast<const char*>(bytes), count);
    if (bytes_.size() <= kMostAhead) return pplx::task_from_result(count);
    held_.emplace(Held{{}, count});
    return pplx::create_task(held_->done);
  }

  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool head_ = false, ended_ = false, left_ = false;  // all below guarded by mutex_
  std::string error_;
  std::string bytes_;
  std::optional<Held> held_;
};

// The text of whatever a finished task threw; empty if nothing.
template <typename Task>
std::string ErrorOf(Task& task) {
  try {
    task.get();
    return {};
  } catch (const std::exception& error) {
    return *error.what() ? error.what() : "unknown error";
  } catch (...) {
    return "unknown error";
  }
}

class CpprestTransport : public HttpTransport {
 public:
  explicit CpprestTransport(TransportOptions options) : options_(std::move(options)), pool_(NewPool()) {}

  Result<HttpReply> Send(const HttpCall& call) override {
    const auto start = std::chrono::steady_clock::now();
    const std::shared_ptr<Pool> pool = CurrentPool();
    Result<HttpReply> reply = SendOn(pool->client, call);
    if (reply.ok()) pool->worked = true;
    if (reply.ok() || reply.status().code() != Code::kUnavailable) return reply;
    Discard(pool);
    // A connection that the server had dropped fails at once; what took long is not worth as long again.
    const bool quick = std::chrono::steady_clock::now() - start < options_.call_timeout / 4;
    return quick && pool->worked && call.method != "POST" ? SendOn(CurrentPool()->client, call) : reply;
  }

  Result<HttpReply> SendOn(http_client& client, const HttpCall& call) const {
    const auto body = std::make_shared<BodyBuffer>(options_.max_body_bytes);
    try {
      ASSIGN_OR_RETURN(http::http_request request, Request(call));
      request.set_response_stream(concurrency::streams::ostream(concurrency::streams::streambuf<uint8_t>(body)));
      const http::http_response response = client.request(request).get();
      response.content_ready().get();
      HttpReply reply = HeadOf(response);
      reply.body = body->Take();
      return reply;
    } catch (const std::exception& error) {
      return Failed(call, error.what());
    }
  }

  Result<HttpReply> Stream(const HttpCall& call, std::chrono::milliseconds idle_timeout, std::stop_token stop,
                           const std::function<Status(std::string_view)>& on_bytes) override {
    const auto pipe = std::make_shared<Pipe>();
    const auto reply = std::make_shared<HttpReply>();
    pplx::cancellation_token_source cancel;
    Result<HttpReply> result = Internal("not run");
    try {
      ASSIGN_OR_RETURN(http::http_request request, Request(call));
      request.set_response_stream(concurrency::streams::ostream(concurrency::streams::streambuf<uint8_t>(pipe)));
      http_client client(options_.url, Config(idle_timeout));
      client.request(request, cancel.get_token()).then([pipe, reply](pplx::task<http::http_response> task) {
        if (const std::string error = ErrorOf(task); !error.empty()) return pipe->OnEnd(error);
        const http::http_response response = task.get();
        *reply = HeadOf(response);
        pipe->OnHead();
        response.content_ready().then([pipe](pplx::task<http::http_response> body) { pipe->OnEnd(ErrorOf(body)); });
      });
      result = Read(call, *pipe, *reply, stop, on_bytes);
    } catch (const std::exception& error) {
      result = Failed(call, error.what());
    }
    pipe->Leave();
    cancel.cancel();
    return result;
  }

 private:
  // A client with its kept-alive connections.
  struct Pool {
    explicit Pool(const http_client& c) : client(c) {}
    http_client client;
    std::atomic<bool> worked = false;  // some call succeeded
  };
  std::shared_ptr<Pool> NewPool() const {
    return std::make_shared<Pool>(http_client(options_.url, Config(options_.call_timeout)));
  }
  std::shared_ptr<Pool> CurrentPool() {
    const std::lock_guard lock(mutex_);
    return pool_;
  }
  // After a failure: the pool may hold more connections that the server dropped, each good for one more failure.
  void Discard(const std::shared_ptr<Pool>& failed) {
    const std::lock_guard lock(mutex_);
    if (pool_ == failed) pool_ = NewPool();
  }

  Result<HttpReply> Read(const HttpCall& call, Pipe& pipe, const HttpReply& reply, const std::stop_token& stop,
                         const std::function<Status(std::string_view)>& on_bytes) {
    HttpReply head;
    for (bool head_seen = false;;) {
      const Pipe::Arrival arrival = pipe.Next(stop, head_seen);
      if (stop.stop_requested()) return Cancelled(call.method + " " + call.target);
      if (arrival.head && !head_seen) {
        head = reply;
        head_seen = true;
      }
      if (!arrival.bytes.empty()) {
        if (head.status / 100 == 2) {
          RETURN_IF_ERROR(on_bytes(arrival.bytes));
        } else if (head.body.size() + arrival.bytes.size() <= options_.max_body_bytes) {
          head.body.append(arrival.bytes);
        }
      } else if (arrival.ended) {
        if (!arrival.error.empty()) return Failed(call, arrival.error);
        return head;
      }
    }
  }

  static Status Failed(const HttpCall& call, const std::string& why) {
    return Unavailable(call.method + " " + call.target.substr(0, call.target.find('?')) + ": " + why);
  }

  http_client_config Config(std::chrono::milliseconds timeout) const {
    http_client_config config;
    config.set_timeout(timeout);
    config.set_max_redirects(0);
    // TLS forbids an address as server name.
    const std::string host = web::uri(options_.url).host();
    if (host.find_first_not_of("0123456789.") == std::string::npos || host.find(':') != std::string::npos)
      config.set_tlsext_sni_enabled(false);
    config.set_ssl_context_callback([ca = options_.ca_file](boost::asio::ssl::context& context) {
      SSL_CTX_set_cert_store(context.native_handle(), X509_STORE_new());
      context.load_verify_file(ca);
    });
    return config;
  }

  Result<http::http_request> Request(const HttpCall& call) const {
    http::http_request request(call.method);
    request.set_request_uri(web::uri(call.target));
    request.headers().add("Accept", "application/json");
    request.headers().add("User-Agent", "headrace-operator");
    if (!options_.token_file.empty()) {
      ASSIGN_OR_RETURN(const std::string token, ReadFile(options_.token_file));
      request.headers().add("Authorization", "Bearer " + Trimmed(token));
    }
    if (!call.body.empty()) request.set_body(call.body, call.content_type);
    return request;
  }

  static HttpReply HeadOf(const http::http_response& response) {
    HttpReply reply;
    reply.status = response.status_code();
    for (const auto& [name, value] : response.headers()) {
      std::string lower = name;
      for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      reply.headers[lower] = value;
    }
    return reply;
  }

  const TransportOptions options_;
  std::mutex mutex_;
  std::shared_ptr<Pool> pool_;  // guarded by mutex_; shared with the calls in progress
};

}  // namespace

Result<TransportOptions> InClusterOptions() {
  const char* host = std::getenv("KUBERNETES_SERVICE_HOST");
  const char* port = std::getenv("KUBERNETES_SERVICE_PORT");
  if (!host || !*host)
    return NotFound("KUBERNETES_SERVICE_HOST is not set: not in a pod; give the API server's address instead");
  std::string name = host;
  if (name.find(':') != std::string::npos) name = "[" + name + "]";
  TransportOptions options;
  options.url = "https://" + name + ":" + (port && *port ? port : "443");
  options.token_file = std::string(kServiceAccount) + "token";
  options.ca_file = std::string(kServiceAccount) + "ca.crt";
  return options;
}

Result<std::string> InClusterNamespace() {
  ASSIGN_OR_RETURN(std::string name, ReadFile(std::string(kServiceAccount) + "namespace"));
  return Trimmed(std::move(name));
}

Result<std::unique_ptr<HttpTransport>> MakeTransport(TransportOptions options) {
  if (options.url.starts_with("https://") && options.ca_file.empty())
    return InvalidArgument("url " + options.url + ": https needs a file with the authority's certificate");
  static std::once_flag first;
  try {
    std::call_once(first, [&] {
      ::setenv(X509_get_default_cert_file_env(), "/dev/null", 1);
      crossplat::threadpool::initialize_with_threads(options.threads);
    });
    return std::unique_ptr<HttpTransport>(std::make_unique<CpprestTransport>(std::move(options)));
  } catch (const std::exception& error) {
    return InvalidArgument("url " + options.url + ": " + error.what());
  }
}

}  // namespace headrace::kube
