// One connection to a TLS server on this machine, as raw as a hostile peer wants it; the server's name and certificate
// are not looked at. One thread.
#pragma once

#include <openssl/ssl.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace headrace::flood {

class Peer {
 public:
  explicit Peer(uint16_t port);
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  // Each is false once the connection has ended, or nothing happened on it for a minute.
  bool Handshake();
  bool Send(std::string_view bytes);  // before a handshake: as they are
  // Tells the server that no more will come; reading goes on.
  void EndSending();
  // One answer with Content-Length; its status, 0 if the connection ended before it was whole.
  int ReadAnswer();
  const std::string& body() const { return body_; }
  // Whether nothing came for so long that the read was given up.
  bool timed_out() const { return timed_out_; }

 private:
  int Read(char* bytes, int count);
  // false: there is no more.
  bool ReadMore();

  const int socket_;
  std::unique_ptr<SSL, void (*)(SSL*)> ssl_{nullptr, SSL_free};
  bool timed_out_ = false;
  std::string received_;  // and not looked at
  std::string body_;
};

}  // namespace headrace::flood
