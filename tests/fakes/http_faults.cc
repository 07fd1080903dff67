#include "tests/fakes/http_faults.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>

namespace headrace::fakes {
namespace {

// One request, of which `pending` holds what has come of it and perhaps more. false: the client is gone.
bool ReadRequest(int fd, std::string* pending, SeenRequest* request) {
  size_t head = std::string::npos;
  size_t length = 0;
  while (true) {
    if (head == std::string::npos && (head = pending->find("\r\n\r\n")) != std::string::npos) {
      head += 4;
      size_t at = pending->find("\r\n");
      const std::string line = pending->substr(0, at);
      request->method = line.substr(0, line.find(' '));
      request->target = line.substr(line.find(' ') + 1, line.rfind(' ') - line.find(' ') - 1);
      for (at += 2; at < head - 2;) {
        const size_t end = pending->find("\r\n", at);
        const size_t colon = pending->find(':', at);
        std::string name = pending->substr(at, colon - at);
        std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
        const size_t value = pending->find_first_not_of(' ', colon + 1);
        request->headers[name] = pending->substr(value, end - value);
        at = end + 2;
      }
      if (request->headers.count("content-length") > 0) length = std::stoull(request->headers["content-length"]);
    }
    if (head != std::string::npos && pending->size() >= head + length) break;
    char buffer[16 << 10];
    const ssize_t read = recv(fd, buffer, sizeof buffer, 0);
    if (read <= 0) return false;
    pending->append(buffer, static_cast<size_t>(read));
  }
  request->body = pending->substr(head, length);
  request->raw = pending->substr(0, head + length);
  pending->erase(0, head + length);
  return true;
}

bool SendAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

}  // namespace

Answer RangeOf(const SeenRequest& request, const std::string& object, const std::string& etag) {
  unsigned long long first = 0;
  unsigned long long last = 0;
  const auto range = request.headers.find("range");
  if (range == request.headers.end() || std::sscanf(range->second.c_str(), "bytes=%llu-%llu", &first, &last) != 2) {
    return {.status = 200, .headers = {{"ETag", etag}}, .body = object};
  }
  if (first >= object.size()) {
    return {.status = 416, .headers = {{"Content-Range", "bytes */" + std::to_string(object.size())}}};
  }
  last = std::min<unsigned long long>(last, object.size() - 1);
  return {.status = 206,
          .headers = {{"ETag", etag},
                      {"Content-Range", "bytes " + std::to_string(first) + "-" + std::to_string(last) + "/" +
                                            std::to_string(object.size())}},
          .body = object.substr(first, last - first + 1)};
}

HttpFaults::HttpFaults(Handler handler, bool handles_at_once)
    : handler_(std::move(handler)), at_once_(handles_at_once) {
  listen_fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  int ends[2];
  if (bind(listen_fd_, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(listen_fd_, 128) != 0 ||
      getsockname(listen_fd_, reinterpret_cast<sockaddr*>(&address), &size) != 0 || pipe(ends) != 0) {
    std::perror("HttpFaults");
    std::abort();
  }
  port_ = ntohs(address.sin_port);
  stop_read_ = ends[0];
  stop_write_ = ends[1];
  accept_ = std::thread([this] { Accept(); });
}

HttpFaults::~HttpFaults() {
  close(stop_write_);  // every poll on stop_read_ returns
  accept_.join();
  for (std::thread& thread : threads_) thread.join();
  close(stop_read_);
  close(listen_fd_);
}

std::string HttpFaults::url() const { return "http://127.0.0.1:" + std::to_string(port_); }

std::vector<SeenRequest> HttpFaults::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

int HttpFaults::connections() const {
  const std::lock_guard lock(mutex_);
  return connections_;
}

void HttpFaults::AwaitGone(int clients) {
  for (int now = gone_; now < clients; now = gone_) gone_.wait(now);
}

void HttpFaults::Accept() {
  while (true) {
    pollfd waited[2] = {{listen_fd_, POLLIN, 0}, {stop_read_, POLLIN, 0}};
    poll(waited, 2, -1);
    if (waited[1].revents != 0) return;
    const int fd = accept4(listen_fd_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) continue;
    const std::lock_guard lock(mutex_);
    threads_.emplace_back([this, fd, connection = connections_++] { Serve(fd, connection); });
  }
}

void HttpFaults::AwaitClose(int fd) {
  pollfd waited[2] = {{fd, POLLRDHUP, 0}, {stop_read_, POLLIN, 0}};
  poll(waited, 2, -1);
  if (waited[0].revents == 0) return;
  ++gone_;
  gone_.notify_all();
}

void HttpFaults::Serve(int fd, int connection) {
  std::string pending;
  while (true) {
    pollfd waited[2] = {{fd, POLLIN, 0}, {stop_read_, POLLIN, 0}};
    if (pending.empty()) poll(waited, 2, -1);
    if (waited[1].revents != 0) break;
    SeenRequest request;
    if (!ReadRequest(fd, &pending, &request)) break;
    request.connection = connection;
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(request);
    }
    Answer answer;
    if (at_once_) {
      answer = handler_(request);
    } else {
      const std::lock_guard lock(handler_mutex_);
      answer = handler_(request);
    }
    if (answer.silent) {
      AwaitClose(fd);
      break;
    }
    std::string head = "HTTP/1.1 " + std::to_string(answer.status) +
                       " Said\r\nContent-Length: " + std::to_string(answer.body.size()) + "\r\n";
    for (const auto& [name, value] : answer.headers) head += name + ": " + value + "\r\n";
    const std::optional<size_t> cut = answer.reset_after   ? answer.reset_after
                                      : answer.close_after ? answer.close_after
                                                           : answer.stall_after;
    const std::string_view body = std::string_view(answer.body).substr(0, cut.value_or(answer.body.size()));
    if (!SendAll(fd, head.append("\r\n").append(body))) break;
    if (answer.stall_after) AwaitClose(fd);
    if (answer.reset_after) {
      const linger at_once = {1, 0};
      setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
    if (cut) break;
  }
  close(fd);
}

}  // namespace headrace::fakes
