// One io_context and one thread. Plain and TLS links share one template; sockets are generic, TCP or Unix.
#include "sidecar/collective/transport.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <boost/asio/connect.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <map>
#include <thread>

#include "common/base/log.h"
#include "common/spec/names.h"

namespace headrace::side {
namespace {

namespace asio = boost::asio;
namespace ssl = asio::ssl;
using asio::ip::tcp;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;
using GenericSocket = asio::generic::stream_protocol::socket;
using Unix = asio::local::stream_protocol;
using LinkId = Transport::LinkId;

constexpr std::string_view kUnixPrefix = "unix:";
// How long the acceptor rests after an error such as EMFILE.
constexpr auto kAcceptRest = std::chrono::milliseconds(100);

bool IsUnix(const std::string& address) { return address.rfind(kUnixPrefix, 0) == 0; }

struct HostPort {
  std::string host;
  std::string port;
};

// "host:port", "[::1]:port", ":port".
Result<HostPort> SplitAddress(const std::string& address) {
  const size_t colon = address.rfind(':');
  HostPort split;
  if (colon != std::string::npos) split = {address.substr(0, colon), address.substr(colon + 1)};
  if (split.host.size() > 2 && split.host.front() == '[' && split.host.back() == ']') {
    split.host = split.host.substr(1, split.host.size() - 2);
  }
  const bool digits = !split.port.empty() && split.port.find_first_not_of("0123456789") == std::string::npos;
  if (!digits || split.port.size() > 5 || std::stoi(split.port) > 65535) {
    return InvalidArgument("\"" + address + "\" is no address of a loader: write host:port or unix:/path");
  }
  return split;
}

Result<Unix::endpoint> UnixEndpoint(const std::string& address) {
  const std::string path = address.substr(kUnixPrefix.size());
  try {
    return Unix::endpoint(path);
  } catch (const boost::system::system_error&) {
    return InvalidArgument("\"" + path + "\" has " + std::to_string(path.size()) +
                           " characters, more than a Unix socket's path can have: use a shorter folder");
  }
}

// Both sides verify alike: TLS 1.3, a certificate of our authority for the loaders' name. Nothing is resumed, so that
// every connection is judged by the files of its day.
Result<std::shared_ptr<ssl::context>> MakeTls(const std::string& directory) {
  std::string file;
  try {
    auto context = std::make_shared<ssl::context>(ssl::context::tls);
    SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_3_VERSION);
    SSL_CTX_set_session_cache_mode(context->native_handle(), SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(context->native_handle(), 0);
    context->set_verify_mode(ssl::verify_peer | ssl::verify_fail_if_no_peer_cert);
    context->set_verify_callback(ssl::host_name_verification(names::kPeerTlsName));
    context->load_verify_file(file = directory + "/" + names::kPeerAuthorityFile);
    context->use_certificate_chain_file(file = directory + "/" + names::kPeerCertificateFile);
    context->use_private_key_file(file = directory + "/" + names::kPeerKeyFile, ssl::context::pem);
    return context;
  } catch (const std::exception& error) {
    return Unavailable(file + ": not usable for TLS: " + error.what());
  }
}

}  // namespace

// A connection, kept alive by its pending operations and by the table of links.
class Link {
 public:
  virtual ~Link() = default;
  virtual void Open(ssl::stream_base::handshake_type side) = 0;
  virtual void Send(std::string bytes) = 0;
  virtual void Shut() = 0;

  bool is_open = false;
  bool sending = false;
  bool incoming = false;
  Clock::time_point since = Clock::now();
};

// Everything runs on `thread`, once it has started, but wake_pending.
struct Transport::State {
  explicit State(TransportOptions opts) : options(std::move(opts)) {}

  Status Listen();
  template <typename Endpoint, typename Acceptor>
  Status Bind(Acceptor& acceptor, const Endpoint& endpoint, bool both_families);
  template <typename Acceptor>
  void Accept(Acceptor& acceptor);
  // Starts the link over a connected socket; closes it where TLS cannot be had.
  void Adopt(LinkId id, GenericSocket socket, bool incoming, bool tls);
  // The attempt of link `id` failed before there was a stream.
  void Drop(LinkId id, const Status& why);
  void Closed(LinkId id, const Status& why);
  void Tick(std::chrono::milliseconds after);
  void Run();

  const TransportOptions options;
  Events* events = nullptr;
  uint16_t port = 0;
  std::atomic<bool> wake_pending = false;

  asio::io_context context{1};
  tcp::acceptor tcp_acceptor{context};
  Unix::acceptor unix_acceptor{context};
  tcp::resolver resolver{context};
  asio::steady_timer ticker{context};
  asio::steady_timer rest{context};
  LinkId last_id = 0;
  std::string last_refusal;
  std::map<LinkId, std::shared_ptr<Link>> links;
  std::map<LinkId, Clock::time_point> connecting;  // no stream yet
  std::thread thread;
};

namespace {

template <typename Stream>
class StreamLink : public Link, public std::enable_shared_from_this<StreamLink<Stream>> {
 public:
  // `tls` (may be null) is what `stream` was made with: it must outlive the stream.
  StreamLink(Transport::State* transport, LinkId id, std::shared_ptr<ssl::context> tls, Stream stream)
      : transport_(*transport), id_(id), tls_(std::move(tls)), stream_(std::move(stream)) {}

  void Open(ssl::stream_base::handshake_type side) override {
    if constexpr (kTls) {
      if (side == ssl::stream_base::client) SSL_set_tlsext_host_name(stream_.native_handle(), names::kPeerTlsName);
      stream_.async_handshake(side, [self = this->shared_from_this()](error_code error) {
        if (error) return self->End("TLS: ", error);
        self->Opened();
      });
    } else {
      Opened();
    }
  }

  void Send(std::string bytes) override {
    sending = true;
    outbox_ = std::move(bytes);
    asio::async_write(stream_, asio::buffer(outbox_), [self = this->shared_from_this()](error_code error, size_t) {
      self->sending = false;
      if (self->shut_) return;
      if (error) return self->End("", error);
      self->transport_.events->OnSent(self->id_);
    });
  }

  void Shut() override {
    shut_ = true;
    error_code ignored;
    stream_.lowest_layer().close(ignored);
  }

 private:
  static constexpr bool kTls = !std::is_same_v<Stream, GenericSocket>;

  void Opened() {
    if (shut_) return;
    is_open = true;
    transport_.events->OnOpen(id_);
    if (!shut_) Read();
  }

  void Read() {
    stream_.async_read_some(asio::buffer(chunk_), [self = this->shared_from_this()](error_code error, size_t size) {
      if (error) return self->End("", error);
      if (self->Take(size)) self->Read();
    });
  }

  // Hands out the whole frames that have come. False: the link has ended.
  bool Take(size_t size) {
    inbox_.append(chunk_.data(), size);
    std::string_view rest = inbox_;
    while (!shut_) {
      const Result<std::optional<wire::Message>> message = wire::Decode(&rest);
      if (!message.ok()) {
        transport_.Closed(id_, message.status());
        return false;
      }
      if (!message->has_value()) break;
      transport_.events->OnMessage(id_, **message);
    }
    inbox_.erase(0, inbox_.size() - rest.size());
    return !shut_;
  }

  void End(const char* where, error_code error) {
    if (shut_) return;
    const bool gone = error == asio::error::eof || error == asio::error::connection_reset ||
                      error == ssl::error::stream_truncated || error == asio::error::broken_pipe;
    transport_.Closed(id_, Unavailable(gone && is_open ? "its connection closed" : where + error.message()));
  }

  Transport::State& transport_;
  const LinkId id_;
  const std::shared_ptr<ssl::context> tls_;
  Stream stream_;
  bool shut_ = false;
  std::array<char, 4096> chunk_;
  std::string inbox_;
  std::string outbox_;
};

}  // namespace

template <typename Endpoint, typename Acceptor>
Status Transport::State::Bind(Acceptor& acceptor, const Endpoint& endpoint, bool both_families) {
  error_code error;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error && both_families) acceptor.set_option(asio::ip::v6_only(false), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (!error) return {};
  error_code ignored;
  acceptor.close(ignored);
  return Unavailable("cannot listen on " + options.listen + ": " + error.message());
}

Status Transport::State::Listen() {
  if (options.listen.empty()) return {};
  if (IsUnix(options.listen)) {
    ASSIGN_OR_RETURN(const Unix::endpoint endpoint, UnixEndpoint(options.listen));
    ::unlink(endpoint.path().c_str());  // of an earlier loader of this run
    RETURN_IF_ERROR(Bind(unix_acceptor, endpoint, false));
    ::chmod(endpoint.path().c_str(), 0600);
    Accept(unix_acceptor);
    return {};
  }
  ASSIGN_OR_RETURN(const HostPort split, SplitAddress(options.listen));
  const auto number = static_cast<uint16_t>(std::stoi(split.port));
  if (split.host.empty()) {
    // A host without IPv6 refuses the first.
    if (!Bind(tcp_acceptor, tcp::endpoint(tcp::v6(), number), true).ok()) {
      RETURN_IF_ERROR(Bind(tcp_acceptor, tcp::endpoint(tcp::v4(), number), false));
    }
  } else {
    error_code error;
    const asio::ip::address address = asio::ip::make_address(split.host, error);
    if (error) return InvalidArgument("cannot listen on " + options.listen + ": use a numeric address");
    RETURN_IF_ERROR(Bind(tcp_acceptor, tcp::endpoint(address, number), false));
  }
  port = tcp_acceptor.local_endpoint().port();
  Accept(tcp_acceptor);
  return {};
}

template <typename Acceptor>
void Transport::State::Accept(Acceptor& acceptor) {
  acceptor.async_accept([this, &acceptor](error_code error, auto socket) {
    if (error) {  // EMFILE and its like pass
      rest.expires_after(kAcceptRest);
      rest.async_wait([this, &acceptor](error_code) { Accept(acceptor); });
      return;
    }
    constexpr bool kTcp = std::is_same_v<Acceptor, tcp::acceptor>;
    if (links.size() < options.max_links) {
      if constexpr (kTcp) socket.set_option(tcp::no_delay(true), error);
      Adopt(++last_id, GenericSocket(std::move(socket)), /*incoming=*/true, kTcp);
    }
    Accept(acceptor);
  });
}

void Transport::State::Adopt(LinkId id, GenericSocket socket, bool incoming, bool tls) {
  std::shared_ptr<Link> link;
  if (tls) {
    Result<std::shared_ptr<ssl::context>> context = MakeTls(options.tls_dir);
    if (!context.ok()) {
      if (!incoming) return Drop(id, context.status());
      if (context.status().message() == last_refusal) return;
      last_refusal = context.status().message();
      log::Warning("no connection from other loaders can be taken", {{"error", last_refusal}});
      return;
    }
    ssl::stream<GenericSocket> stream(std::move(socket), **context);
    link = std::make_shared<StreamLink<decltype(stream)>>(this, id, *context, std::move(stream));
  } else {
    link = std::make_shared<StreamLink<GenericSocket>>(this, id, nullptr, std::move(socket));
  }
  link->incoming = incoming;
  links[id] = link;
  link->Open(incoming ? ssl::stream_base::server : ssl::stream_base::client);
}

void Transport::State::Drop(LinkId id, const Status& why) {
  if (connecting.erase(id) > 0) events->OnClosed(id, why);
}

void Transport::State::Closed(LinkId id, const Status& why) {
  const auto found = links.find(id);
  if (found == links.end()) return;
  const std::shared_ptr<Link> link = found->second;
  links.erase(found);
  link->Shut();
  if (link->is_open || !link->incoming) return events->OnClosed(id, why);
  if (why.message() == last_refusal) return;
  last_refusal = why.message();  // once, not at each of its attempts
  log::Warning("a connection from another loader was refused", {{"error", last_refusal}});
}

void Transport::State::Tick(std::chrono::milliseconds after) {
  ticker.expires_after(after);
  ticker.async_wait([this](error_code error) {
    if (error) return;
    const auto before = Clock::now() - options.open_timeout;
    const Status late = Unavailable("no answer within " + std::to_string(options.open_timeout.count()) + " ms");
    std::vector<LinkId> slow;
    for (const auto& [id, link] : links)
      if (!link->is_open && link->since < before) slow.push_back(id);
    for (const LinkId id : slow) Closed(id, late);
    slow.clear();
    for (const auto& [id, since] : connecting)
      if (since < before) slow.push_back(id);
    for (const LinkId id : slow) Drop(id, late);
    events->OnTick();
    Tick(options.tick);
  });
}

void Transport::State::Run() {
  for (;;) {
    try {
      context.run();
      return;
    } catch (const std::exception& error) {  // no memory
      log::Error("connection between loaders failed", {{"error", error.what()}});
    }
  }
}

Transport::Transport(std::unique_ptr<State> state) : state_(std::move(state)) {}

Transport::~Transport() {
  state_->context.stop();
  Join();
}

Result<std::unique_ptr<Transport>> Transport::Create(TransportOptions options) {
  auto state = std::make_unique<State>(std::move(options));
  if (!state->options.connect.empty()) {
    if (IsUnix(state->options.connect)) {
      RETURN_IF_ERROR(UnixEndpoint(state->options.connect));
    } else {
      RETURN_IF_ERROR(SplitAddress(state->options.connect));
    }
  }
  RETURN_IF_ERROR(state->Listen());
  return std::unique_ptr<Transport>(new Transport(std::move(state)));
}

void Transport::Start(Events* events) {
  state_->events = events;
  state_->Tick(std::chrono::milliseconds(0));
  state_->thread = std::thread([raw = state_.get()] { raw->Run(); });
}

void Transport::Join() {
  if (state_->thread.joinable()) state_->thread.join();
}

void Transport::Wake() {
  if (state_->wake_pending.exchange(true)) return;
  asio::post(state_->context, [raw = state_.get()] {
    raw->wake_pending = false;
    raw->events->OnWake();
  });
}

uint16_t Transport::port() const { return state_->port; }

LinkId Transport::Connect() {
  State* const state = state_.get();
  const LinkId id = ++state->last_id;
  state->connecting[id] = Clock::now();
  const auto connected = [state, id](auto socket, bool tls) {
    return [state, id, socket, tls](error_code error, const auto&...) {
      if (state->connecting.count(id) == 0) return;  // too late
      if (error) return state->Drop(id, Unavailable(error.message()));
      if (tls) {
        const int on = 1;
        ::setsockopt(socket->native_handle(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      }
      state->Adopt(id, GenericSocket(std::move(*socket)), /*incoming=*/false, tls);
      state->connecting.erase(id);
    };
  };
  if (IsUnix(state->options.connect)) {
    auto socket = std::make_shared<Unix::socket>(state->context);
    socket->async_connect(*UnixEndpoint(state->options.connect), connected(socket, false));
    return id;
  }
  const HostPort split = *SplitAddress(state->options.connect);
  state->resolver.async_resolve(split.host, split.port,
                                [state, id, connected](error_code error, const tcp::resolver::results_type& found) {
                                  if (state->connecting.count(id) == 0) return;
                                  if (error)
                                    return state->Drop(id, Unavailable("the name is not known: " + error.message()));
                                  auto socket = std::make_shared<tcp::socket>(state->context);
                                  asio::async_connect(*socket, found, connected(socket, true));
                                });
  return id;
}

void Transport::Send(LinkId link, std::string bytes) { state_->links.at(link)->Send(std::move(bytes)); }

bool Transport::ready(LinkId link) const {
  const auto found = state_->links.find(link);
  return found != state_->links.end() && found->second->is_open && !found->second->sending;
}

void Transport::Close(LinkId link) {
  state_->connecting.erase(link);
  const auto found = state_->links.find(link);
  if (found == state_->links.end()) return;
  found->second->Shut();
  state_->links.erase(found);
}

void Transport::Finish() { state_->context.stop(); }

}  // namespace headrace::side
