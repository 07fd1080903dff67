// Connections between loaders that carry wire messages: a thread, a listener, links. Knows nothing of agreement.
//
// Over TCP every link is TLS 1.3 in which both sides show a certificate for names::kPeerTlsName, signed by an authority
// of ca.crt; the files are read anew at each connection, so a rotated pair needs no restart. Over a Unix socket links
// are plain, and the socket's permissions keep others out.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "common/base/status.h"
#include "sidecar/collective/wire.h"

namespace headrace::side {

struct TransportOptions {
  // "host:port" or "unix:/path"; empty: does not connect, or does not listen. An empty host listens on all addresses.
  std::string connect;
  std::string listen;
  std::string tls_dir;  // ca.crt, tls.crt, tls.key; for TCP
  std::chrono::milliseconds tick{250};
  std::chrono::milliseconds open_timeout{3000};  // for name, connection and TLS handshake together
  size_t max_links = 64;
};

class Transport {
 public:
  using LinkId = uint64_t;

  // What happens, told on the transport's thread. A call may end the link that it is told of, or any other.
  class Events {
   public:
    virtual ~Events() = default;
    virtual void OnOpen(LinkId link) = 0;
    virtual void OnMessage(LinkId link, const wire::Message& message) = 0;
    // What was sent has left this process; the link takes more.
    virtual void OnSent(LinkId link) = 0;
    // The other side, the network or the timeout ended the link, or it never opened. Not told of those closed by Close.
    virtual void OnClosed(LinkId link, const Status& why) = 0;
    virtual void OnTick() = 0;
    virtual void OnWake() = 0;
  };

  // Binds, if there is something to listen on. Errors: InvalidArgument for an address that is none; Unavailable if it
  // cannot be bound.
  static Result<std::unique_ptr<Transport>> Create(TransportOptions options);
  // Stops at once, joins the thread.
  ~Transport();
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  // Starts the thread. REQUIRES: called once; `events` (not owned) outlives the transport.
  void Start(Events* events);
  // Waits until the thread has ended by Finish.
  void Join();

  // Any thread: OnWake soon; several calls may become one.
  void Wake();
  uint16_t port() const;  // that is listened on; 0 for a Unix socket

  // The transport's thread only, that is, inside Events.
  LinkId Connect();
  // REQUIRES: ready(link).
  void Send(LinkId link, std::string bytes);
  bool ready(LinkId link) const;  // open, and nothing on its way out
  void Close(LinkId link);
  void Finish();

  struct State;

 private:
  explicit Transport(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace headrace::side
