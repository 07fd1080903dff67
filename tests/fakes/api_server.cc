#include "tests/fakes/api_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace headrace::kube {
namespace {

bool SendAll(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

bool SendSlowly(int socket, std::string_view bytes) {
  for (const char byte : bytes)
    if (!SendAll(socket, {&byte, 1})) return false;
  return true;
}

// Closing then sends RST.
void ResetOnClose(int socket) {
  const linger reset{1, 0};
  ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
}

std::string Chunk(std::string_view bytes) {
  char size[32];
  std::snprintf(size, sizeof size, "%zx\r\n", bytes.size());
  return size + std::string(bytes) + "\r\n";
}

std::string HeaderOf(const std::string& head, const std::string& name) {
  const size_t at = head.find("\r\n" + name + ":");
  if (at == std::string::npos) return {};
  const size_t begin = head.find_first_not_of(' ', at + name.size() + 3);
  return head.substr(begin, head.find("\r\n", begin) - begin);
}

// Blocks until the peer is gone: how a half-open server behaves.
void WaitForPeer(int socket) {
  char byte;
  while (::recv(socket, &byte, 1, 0) > 0) {
  }
}

constexpr char kStreamHead[] =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";

}  // namespace

FakeApiServer::FakeApiServer(FakeApi* api) : api_(api) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(listener_, 64) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    std::abort();
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { Accept(); });
}

FakeApiServer::~FakeApiServer() {
  stop_.request_stop();
  ::shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  ::close(listener_);
  {
    const std::lock_guard lock(mutex_);
    for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
  }
  for (std::thread& thread : threads_) thread.join();
}

std::string FakeApiServer::url() const { return "http://127.0.0.1:" + std::to_string(port_); }

void FakeApiServer::NextFault(Fault fault, int times) {
  const std::lock_guard lock(mutex_);
  fault_ = fault;
  faults_left_ = times;
}

void FakeApiServer::DropConnections() {
  const std::lock_guard lock(mutex_);
  for (const int socket : sockets_) {
    ResetOnClose(socket);
    ::shutdown(socket, SHUT_RDWR);
  }
}

std::string FakeApiServer::last_header(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  return HeaderOf(last_head_, name);
}

void FakeApiServer::Accept() {
  for (;;) {
    const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) return;
    ++connections_;
    const std::lock_guard lock(mutex_);
    sockets_.push_back(socket);
    threads_.emplace_back([this, socket] {
      Serve(socket);
      const std::lock_guard remove(mutex_);
      sockets_.remove(socket);
      ::close(socket);
    });
  }
}

void FakeApiServer::Serve(int socket) {
  std::string buffer;
  for (;;) {
    size_t end = std::string::npos;
    size_t length = 0;
    for (;;) {
      end = buffer.find("\r\n\r\n");
      if (end != std::string::npos) {
        length = static_cast<size_t>(std::atoi(HeaderOf(buffer.substr(0, end + 2), "Content-Length").c_str()));
        if (buffer.size() >= end + 4 + length) break;
      }
      char bytes[4096];
      const ssize_t n = ::recv(socket, bytes, sizeof bytes, 0);
      if (n <= 0) return;
      buffer.append(bytes, static_cast<size_t>(n));
    }
    const std::string head = buffer.substr(0, end + 2);
    const std::string body = buffer.substr(end + 4, length);
    buffer.erase(0, end + 4 + length);
    {
      const std::lock_guard lock(mutex_);
      last_head_ = head;
    }
    if (!Answer(socket, head, body)) return;
  }
}

bool FakeApiServer::Answer(int socket, const std::string& head, const std::string& body) {
  Fault fault = Fault::kNone;
  {
    const std::lock_guard lock(mutex_);
    if (faults_left_ > 0) {
      --faults_left_;
      fault = fault_;
    }
  }
  HttpCall call;
  call.method = head.substr(0, head.find(' '));
  const size_t begin = call.method.size() + 1;
  call.target = head.substr(begin, head.find(' ', begin) - begin);
  call.content_type = HeaderOf(head, "Content-Type");
  call.body = body;
  if (fault == Fault::kRefuse) return false;
  if (fault == Fault::kRedirect)
    return SendAll(socket,
                   "HTTP/1.1 302 Found\r\nLocation: " + url() + "/api/v1/elsewhere\r\nContent-Length: 0\r\n\r\n");
  if (call.target.find("watch=true") != std::string::npos) {
    Watch(socket, call, fault);
    return false;
  }
  const HttpReply reply = *api_->Send(call);
  std::string text = "HTTP/1.1 " + std::to_string(reply.status) + " Status\r\nContent-Type: application/json\r\n";
  for (const auto& [name, value] : reply.headers)
    if (name != "content-type") text += name + ": " + value + "\r\n";
  text += "Content-Length: " + std::to_string(reply.body.size()) + "\r\n\r\n" + reply.body;
  switch (fault) {
    case Fault::kSlow: return SendSlowly(socket, text);
    case Fault::kShortBody: SendAll(socket, std::string_view(text).substr(0, text.size() - 5)); return false;
    case Fault::kHalfOpen:
      SendAll(socket, std::string_view(text).substr(0, text.size() - 5));
      WaitForPeer(socket);
      return false;
    case Fault::kReset:
      SendAll(socket, std::string_view(text).substr(0, text.size() - 5));
      ResetOnClose(socket);
      return false;
    case Fault::kGarbageChunk: SendAll(socket, std::string(kStreamHead) + "zz\r\n{}\r\n"); return false;
    default: return SendAll(socket, text);
  }
}

void FakeApiServer::Watch(int socket, const HttpCall& call, Fault fault) {
  // A watcher that leaves while nothing happens is seen only by reading.
  std::stop_source gone;
  const std::stop_callback stopped(stop_.get_token(), [&] { gone.request_stop(); });
  std::atomic<bool> over = false;
  std::thread reader([&] {
    pollfd poll{socket, POLLIN | POLLRDHUP, 0};
    while (!over && ::poll(&poll, 1, 10) == 0) {
    }
    gone.request_stop();
  });
  bool head_sent = false;
  const auto send_head = [&] { return std::exchange(head_sent, true) || SendAll(socket, kStreamHead); };
  const Result<HttpReply> reply = api_->Stream(call, {}, gone.get_token(), [&](std::string_view line) -> Status {
    const Status left = Cancelled("the watcher left");
    if (!send_head()) return left;
    const std::string chunk = Chunk(line);
    switch (fault) {
      case Fault::kSlow: return SendSlowly(socket, chunk) ? Status() : left;
      case Fault::kHalfOpen:
        SendAll(socket, std::string_view(chunk).substr(0, chunk.size() / 2));
        WaitForPeer(socket);
        return left;
      case Fault::kReset:
        SendAll(socket, Chunk(line.substr(0, line.size() / 2)));
        ResetOnClose(socket);
        return left;
      case Fault::kGarbageChunk: SendAll(socket, "zz\r\n" + std::string(line)); return left;
      case Fault::kNegativeChunk: SendAll(socket, "-1\r\n" + std::string(line)); return left;
      case Fault::kHugeChunk: SendAll(socket, "ffffffffffffffff\r\n" + std::string(line)); return left;
      default: return SendAll(socket, chunk) ? Status() : left;
    }
  });
  over = true;
  reader.join();
  if (!reply.ok()) return;
  if (reply->status == 200) {
    send_head();
    SendAll(socket, "0\r\n\r\n");
  } else {
    SendAll(socket, "HTTP/1.1 " + std::to_string(reply->status) +
                        " Status\r\nContent-Length: " + std::to_string(reply->body.size()) + "\r\n\r\n" + reply->body);
  }
}

}  // namespace headrace::kube
