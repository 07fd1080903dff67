#include "tests/flood/peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

namespace headrace::flood {
namespace {

SSL_CTX* Context() {
  static SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
  return context;
}

constexpr size_t kMostHead = 64 << 10;

}  // namespace

Peer::Peer(uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const timeval limit{60, 0};  // a sanitizer's build takes long for a body of 4 MiB where others have the cores
  ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  const int yes = 1;
  ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  // A reset at the end: a million connections would else use up the ports.
  const linger reset{1, 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  (void)::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address);
}

Peer::~Peer() { ::close(socket_); }

bool Peer::Handshake() {
  ssl_.reset(SSL_new(Context()));
  SSL_set_fd(ssl_.get(), socket_);
  errno = 0;
  const bool done = SSL_connect(ssl_.get()) == 1;
  timed_out_ = !done && (errno == EAGAIN || errno == EWOULDBLOCK);
  ERR_clear_error();
  return done;
}

bool Peer::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t piece = std::min<size_t>(bytes.size(), 1 << 20);
    const ssize_t sent = ssl_ ? SSL_write(ssl_.get(), bytes.data(), static_cast<int>(piece))
                              : ::send(socket_, bytes.data(), piece, MSG_NOSIGNAL);
    if (sent <= 0) {
      ERR_clear_error();
      return false;
    }
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

void Peer::EndSending() {
  if (ssl_) SSL_shutdown(ssl_.get());
  ERR_clear_error();
  ::shutdown(socket_, SHUT_WR);
}

int Peer::Read(char* bytes, int count) {
  errno = 0;
  const ssize_t got = ssl_ ? SSL_read(ssl_.get(), bytes, count) : ::recv(socket_, bytes, static_cast<size_t>(count), 0);
  if (got <= 0) timed_out_ = errno == EAGAIN || errno == EWOULDBLOCK;
  ERR_clear_error();
  return static_cast<int>(got);
}

// Several answers may come at a time: what is behind this one is for the next call.
int Peer::ReadAnswer() {
  size_t end = std::string::npos;
  while ((end = received_.find("\r\n\r\n")) == std::string::npos) {
    if (received_.size() > kMostHead || !ReadMore()) return 0;
  }
  constexpr std::string_view kLength = "Content-Length: ";
  const size_t at = received_.find(kLength);
  const size_t length = at < end ? std::strtoul(&received_[at + kLength.size()], nullptr, 10) : 0;
  const size_t begin = end + 4;
  while (received_.size() - begin < length) {
    if (!ReadMore()) return 0;
  }
  constexpr std::string_view kVersion = "HTTP/1.1 ";  // what asked by HTTP/1.0 is answered by it
  const bool is_http = received_.starts_with(kVersion) || received_.starts_with("HTTP/1.0 ");
  const int status = is_http ? std::atoi(&received_[kVersion.size()]) : -1;
  body_ = received_.substr(begin, length);
  received_.erase(0, begin + length);
  return status;
}

bool Peer::ReadMore() {
  char bytes[16384];
  const int got = Read(bytes, sizeof bytes);
  if (got > 0) received_.append(bytes, static_cast<size_t>(got));
  return got > 0;
}

}  // namespace headrace::flood
