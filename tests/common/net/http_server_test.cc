// Raw sockets against the server: what a hostile or broken peer may send.
#include "common/net/http_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "common/net/certificates.h"

namespace headrace {
namespace {

using namespace std::chrono_literals;

class Connection {
 public:
  explicit Connection(uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    const timeval limit{10, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  ~Connection() { ::close(socket_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int socket() const { return socket_; }
  bool connected() const { return connected_; }
  void Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
  }
  // Everything until the server closes; "timeout" is appended if it does not.
  std::string ReadAll() {
    std::string all;
    char bytes[4096];
    for (;;) {
      const ssize_t n = ::recv(socket_, bytes, sizeof bytes, 0);
      if (n == 0 || (n < 0 && errno == ECONNRESET)) return all;
      if (n < 0) return all + "timeout";
      all.append(bytes, static_cast<size_t>(n));
    }
  }
  // One response with Content-Length.
  std::string ReadOne() {
    std::string text;
    char byte;
    while (text.find("\r\n\r\n") == std::string::npos && ::recv(socket_, &byte, 1, 0) == 1) text += byte;
    const size_t at = text.find("Content-Length: ");
    size_t length = at == std::string::npos ? 0 : std::stoul(text.substr(at + 16));
    for (; length > 0 && ::recv(socket_, &byte, 1, 0) == 1; --length) text += byte;
    return text;
  }

 private:
  const int socket_;
  bool connected_ = false;
};

std::string StatusLine(const std::string& response) { return response.substr(0, response.find("\r\n")); }

class HttpServerTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { std::signal(SIGPIPE, SIG_IGN); }  // OpenSSL's client writes without MSG_NOSIGNAL

  void Start(HttpServerOptions options = {}) {
    options.address = "127.0.0.1";
    auto server = HttpServer::Start(options, [this](const HttpRequest& request) -> HttpResponse {
      ++calls_;
      if (request.path == "/throw") throw std::runtime_error("a secret");
      if (request.path == "/throw-int") throw 5;
      if (request.path == "/who") return {.body = request.authorization};
      return {.status = request.path == "/missing" ? 404 : 200,
              .body = request.method + " " + request.path + " [" + request.query + "] " +
                      std::to_string(request.body.size())};
    });
    ASSERT_TRUE(server.ok()) << server.status().ToString();
    server_ = *std::move(server);
  }
  std::string Exchange(std::string_view request) {
    Connection connection(server_->port());
    connection.Send(request);
    ::shutdown(connection.socket(), SHUT_WR);
    return connection.ReadAll();
  }
  void ExpectAlive() {
    EXPECT_EQ(StatusLine(Exchange("GET /ok HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")), "HTTP/1.1 200 OK");
  }

  std::atomic<int> calls_ = 0;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, AnswersWithMethodPathQueryAndBody) {
  Start();
  const std::string got =
      Exchange("POST /a/b?c=d&e HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nConnection: close\r\n\r\nxyz");
  EXPECT_EQ(StatusLine(got), "HTTP/1.1 200 OK");
  EXPECT_TRUE(got.ends_with("\r\n\r\nPOST /a/b [c=d&e] 3")) << got;
  EXPECT_EQ(StatusLine(Exchange("GET /missing HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")),
            "HTTP/1.1 404 Not Found");
}

TEST_F(HttpServerTest, HandsOverTheCredential) {
  Start();
  EXPECT_TRUE(Exchange("GET /who HTTP/1.1\r\nHost: a\r\nauthorization:  Bearer abc \r\nConnection: close\r\n\r\n")
                  .ends_with("\r\n\r\nBearer abc"));
  EXPECT_TRUE(Exchange("GET /who HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").ends_with("\r\n\r\n"));
}

TEST_F(HttpServerTest, KeepsConnectionsAlive) {
  Start();
  Connection connection(server_->port());
  for (int i = 0; i < 3; ++i) {
    connection.Send(
        "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n2\r\nef\r\n0\r\n\r\n");
    EXPECT_TRUE(connection.ReadOne().ends_with("POST /x [] 6"));
  }
  EXPECT_EQ(calls_, 3);
}

TEST_F(HttpServerTest, AnExceptionIsA500WithoutDetail) {
  Start();
  for (const char* path : {"/throw", "/throw-int"}) {
    const std::string got = Exchange("GET " + std::string(path) + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    EXPECT_EQ(StatusLine(got), "HTTP/1.1 500 Internal Server Error");
    EXPECT_EQ(got.find("secret"), std::string::npos);
  }
  ExpectAlive();
}

TEST_F(HttpServerTest, MalformedRequestsCostOnlyTheirConnection) {
  Start();
  const char* requests[] = {
      "\r\n\r\n\r\n",
      "GARBAGE\r\n\r\n",
      "GET / HTTP/9.9\r\n\r\n",
      "GET /\x01 HTTP/1.1\r\n\r\n",
      "GET / HTTP/1.1\r\nbad header\r\n\r\n",
      "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
      "POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
      "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\nabc\r\n",
      "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n",
      "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\nabc\r\n",
      "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcdef\r\n0\r\n\r\n",
      "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  // a TLS hello on the plain port
  };
  for (const char* request : requests) {
    const std::string got = Exchange(request);
    EXPECT_TRUE(got.empty() || StatusLine(got) == "HTTP/1.1 400 Bad Request") << request << " -> " << got;
  }
  EXPECT_EQ(calls_, 0);
  ExpectAlive();
}

TEST_F(HttpServerTest, OversizedHeadersAndBodiesAreRefused) {
  Start({.max_body_bytes = 1000});
  EXPECT_EQ(StatusLine(Exchange("GET / HTTP/1.1\r\nX: " + std::string(20000, 'x') + "\r\n\r\n")),
            "HTTP/1.1 431 Request Header Fields Too Large");
  EXPECT_EQ(StatusLine(Exchange("POST / HTTP/1.1\r\nContent-Length: 1001\r\n\r\n")), "HTTP/1.1 413 Payload Too Large");
  EXPECT_EQ(StatusLine(Exchange("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n7fffffff\r\nabc")),
            "HTTP/1.1 413 Payload Too Large");
  EXPECT_EQ(calls_, 0);
  EXPECT_EQ(StatusLine(Exchange("POST / HTTP/1.1\r\nContent-Length: 1000\r\nConnection: close\r\n\r\n" +
                                std::string(1000, 'x'))),
            "HTTP/1.1 200 OK");
}

TEST_F(HttpServerTest, SilentAndDrippingPeersAreDroppedAfterTheTimeout) {
  Start({.timeout_ms = 200});
  Connection silent(server_->port()), half(server_->port()), idle(server_->port());
  half.Send("POST / HTTP/1.1\r\nContent-Length: 100\r\n\r\nabc");
  idle.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_NE(idle.ReadOne(), "");
  EXPECT_EQ(silent.ReadAll(), "");
  EXPECT_EQ(half.ReadAll(), "");
  EXPECT_EQ(idle.ReadAll(), "");
  // One byte now and then does not extend the deadline.
  Connection dripping(server_->port());
  std::atomic<bool> closed = false;
  std::thread drip([&] {
    while (!closed) {
      dripping.Send("G");
      std::this_thread::sleep_for(20ms);
    }
  });
  EXPECT_EQ(dripping.ReadAll().find("timeout"), std::string::npos);
  closed = true;
  drip.join();
  ExpectAlive();
}

TEST_F(HttpServerTest, AnIdleConnectionMayLiveLongerThanARequest) {
  Start({.timeout_ms = 100, .idle_timeout_ms = 600});
  Connection connection(server_->port());
  const std::string_view request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  connection.Send(request);
  EXPECT_NE(connection.ReadOne(), "");
  std::this_thread::sleep_for(250ms);  // an idle client
  connection.Send(request);
  EXPECT_TRUE(connection.ReadOne().starts_with("HTTP/1.1 200 OK"));
  connection.Send("GET /");  // begun: the short deadline counts
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(connection.ReadAll(), "");
  EXPECT_LT(std::chrono::steady_clock::now() - start, 500ms);
}

TEST_F(HttpServerTest, AtTheCapThePeerThatWasAwaitedLongestMakesRoom) {
  Start({.max_connections = 2, .timeout_ms = 60000});
  const std::string_view request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  Connection first(server_->port()), second(server_->port());
  second.Send(request);
  EXPECT_NE(second.ReadOne(), "");
  first.Send(request);
  EXPECT_NE(first.ReadOne(), "");
  Connection third(server_->port());
  third.Send(request);
  EXPECT_TRUE(third.ReadOne().starts_with("HTTP/1.1 200 OK"));
  EXPECT_EQ(second.ReadAll(), "") << "sent away";
  first.Send(request);
  EXPECT_TRUE(first.ReadOne().starts_with("HTTP/1.1 200 OK")) << "it has spoken since";
}

TEST_F(HttpServerTest, SilentPeersKeepNobodyOut) {
  Start({.max_connections = 8, .timeout_ms = 60000});
  std::vector<std::unique_ptr<Connection>> silent;
  for (int i = 0; i < 100; ++i) {
    silent.push_back(std::make_unique<Connection>(server_->port()));
    if (i % 10 == 0) ExpectAlive();
  }
}

TEST_F(HttpServerTest, AtTheCapAPeerThatWaitsForItsAnswerIsNotSentAway) {
  std::atomic<bool> asked = false, go = false;
  auto server = HttpServer::Start({.address = "127.0.0.1", .threads = 2, .max_connections = 1},
                                  [&](const HttpRequest&) -> HttpResponse {
                                    asked = true;
                                    asked.notify_all();
                                    go.wait(false);
                                    return {.body = "ok"};
                                  });
  ASSERT_TRUE(server.ok());
  const std::string_view request = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
  Connection first((*server)->port());
  first.Send(request);
  asked.wait(false);
  Connection second((*server)->port());  // in the kernel's queue until the first is through
  second.Send(request);
  go = true;
  go.notify_all();
  EXPECT_TRUE(first.ReadAll().ends_with("ok"));
  EXPECT_TRUE(second.ReadAll().ends_with("ok"));
}

TEST_F(HttpServerTest, LargeRequestsThatDoNotComeMakeRoomForThoseThatDo) {
  Start({.max_body_bytes = 1000, .max_bodies_bytes = 2500, .timeout_ms = 60000});
  const std::string begun = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n";
  Connection first(server_->port()), second(server_->port());
  first.Send(begun);
  second.Send(begun);
  EXPECT_EQ(StatusLine(Exchange("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\nConnection: close\r\n\r\n" +
                                std::string(1000, 'x'))),
            "HTTP/1.1 200 OK");
  // One of the two went, whichever the server saw first; the other may finish.
  first.Send(std::string(1000, 'x'));
  second.Send(std::string(1000, 'x'));
  const std::string answers = first.ReadOne() + second.ReadOne();
  EXPECT_EQ(answers.find("200 OK"), answers.rfind("200 OK")) << answers;
  EXPECT_NE(answers.find("200 OK"), std::string::npos);
}

TEST_F(HttpServerTest, ManyConnectionsOnSeveralThreads) {
  Start({.threads = 4});
  std::atomic<int> good = 0;
  std::vector<std::thread> clients;
  for (int i = 0; i < 16; ++i) {
    clients.emplace_back([&] {
      for (int n = 0; n < 30; ++n) {
        Connection connection(server_->port());
        for (int k = 0; k < 3; ++k) {
          connection.Send("GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
          if (connection.ReadOne().starts_with("HTTP/1.1 200 OK")) ++good;
        }
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(good, 16 * 30 * 3);
}

TEST_F(HttpServerTest, StopsWithOpenConnections) {
  Start({.timeout_ms = 60000});
  Connection idle(server_->port()), half(server_->port());
  half.Send("GET / HT");
  const uint16_t port = server_->port();
  server_.reset();
  EXPECT_EQ(idle.ReadAll(), "");
  EXPECT_FALSE(Connection(port).connected());
}

TEST_F(HttpServerTest, APortInUseIsAnError) {
  Start();
  const auto second = HttpServer::Start({.address = "127.0.0.1", .port = server_->port()}, nullptr);
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.status().message().find("127.0.0.1:" + std::to_string(server_->port())), std::string::npos);
  EXPECT_EQ(HttpServer::Start({.address = "nowhere"}, nullptr).status().code(), Code::kInvalidArgument);
}

// A TLS client that trusts `ca_pem` and expects `host`. Returns the response, or "" if the handshake fails.
std::string TlsGet(uint16_t port, const std::string& ca_pem, const std::string& host) {
  std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  std::unique_ptr<BIO, int (*)(BIO*)> bio(BIO_new_mem_buf(ca_pem.data(), static_cast<int>(ca_pem.size())), BIO_free);
  std::unique_ptr<X509, void (*)(X509*)> ca(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr), X509_free);
  X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), ca.get());
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  Connection connection(port);
  std::unique_ptr<SSL, void (*)(SSL*)> ssl(SSL_new(context.get()), SSL_free);
  SSL_set1_host(ssl.get(), host.c_str());
  SSL_set_fd(ssl.get(), connection.socket());
  if (SSL_connect(ssl.get()) != 1) return "";
  const std::string request = "GET /tls HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
  SSL_write(ssl.get(), request.data(), static_cast<int>(request.size()));
  std::string all;
  char bytes[1024];
  for (int n; (n = SSL_read(ssl.get(), bytes, sizeof bytes)) > 0;) all.append(bytes, static_cast<size_t>(n));
  return all;
}

TEST_F(HttpServerTest, ServesTlsAndARotatedCertificateWithoutARestart) {
  std::mutex mutex;
  std::shared_ptr<const TlsKeyPair> pair;  // guarded by mutex
  HttpServerOptions options;
  options.tls = [&] {
    const std::lock_guard lock(mutex);
    return pair;
  };
  Start(options);
  const auto now = std::chrono::system_clock::now();
  const auto issue = [&](const Authority& authority) {
    const TlsKeyPair made = *IssueServingCertificate(authority, {"a.svc", "b.svc"}, now, now + 1h);
    const std::lock_guard lock(mutex);
    pair = std::make_shared<const TlsKeyPair>(made);
  };
  const Authority first = *MakeAuthority("first", now, now + 1h);
  const Authority second = *MakeAuthority("second", now, now + 1h);
  EXPECT_EQ(TlsGet(server_->port(), first.certificate_pem, "a.svc"), "") << "no certificate yet";
  issue(first);
  EXPECT_NE(TlsGet(server_->port(), first.certificate_pem, "a.svc"), "");
  EXPECT_NE(TlsGet(server_->port(), first.certificate_pem, "b.svc"), "");
  EXPECT_EQ(TlsGet(server_->port(), first.certificate_pem, "c.svc"), "");
  EXPECT_EQ(TlsGet(server_->port(), second.certificate_pem, "a.svc"), "");
  issue(second);
  EXPECT_NE(TlsGet(server_->port(), second.certificate_pem, "a.svc"), "");
  EXPECT_EQ(TlsGet(server_->port(), first.certificate_pem, "a.svc"), "");
  // A pair that is broken is not taken; the last one serves on.
  {
    const std::lock_guard lock(mutex);
    pair = std::make_shared<const TlsKeyPair>(TlsKeyPair{"not", "pem"});
  }
  EXPECT_NE(TlsGet(server_->port(), second.certificate_pem, "a.svc"), "");
  // Plain text on the TLS port, and silence, cost their own connection.
  EXPECT_EQ(Exchange("GET / HTTP/1.1\r\nHost: a\r\n\r\n").find("200 OK"), std::string::npos);
  EXPECT_EQ(Connection(server_->port()).ReadAll().find("timeout"), std::string::npos);
  EXPECT_NE(TlsGet(server_->port(), second.certificate_pem, "a.svc"), "");
}

}  // namespace
}  // namespace headrace
