// A web server that answers as a test says, with the faults of real ones. One thread a connection; HTTP/1.1, plain.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace headrace::fakes {

struct SeenRequest {
  std::string method;
  std::string target;                          // path and query, encoded
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
  std::string raw;     // all of it
  int connection = 0;  // which one it came over, from 0
};

struct Answer {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> headers;  // besides Content-Length
  std::string body;
  // Faults. Of the body, so many bytes are sent, and then:
  std::optional<size_t> reset_after;  // the connection is reset
  std::optional<size_t> close_after;  // it is closed, as if that were all
  std::optional<size_t> stall_after;  // nothing more comes, until the client goes
  bool silent = false;                // not even a status comes, until the client goes
};

// The bytes [first, last] of `object` that the request's Range names, as a store sends them.
Answer RangeOf(const SeenRequest& request, const std::string& object, const std::string& etag = "\"v1\"");

class HttpFaults {
 public:
  // Called on the connections' threads, one call at a time.
  using Handler = std::function<Answer(const SeenRequest& request)>;
  explicit HttpFaults(Handler handler, bool handles_at_once = false);
  ~HttpFaults();
  HttpFaults(const HttpFaults&) = delete;
  HttpFaults& operator=(const HttpFaults&) = delete;

  std::string url() const;  // the address, "http://127.0.0.1:" and the port
  std::vector<SeenRequest> requests() const;
  int connections() const;
  // Waits until so many clients have closed their end while an answer was stalled or silent.
  void AwaitGone(int clients);

 private:
  void Accept();
  void Serve(int fd, int connection);
  void AwaitClose(int fd);

  const Handler handler_;
  const bool at_once_;
  int listen_fd_ = -1;
  int stop_read_ = -1;
  int stop_write_ = -1;
  uint16_t port_ = 0;
  std::mutex handler_mutex_;
  mutable std::mutex mutex_;
  std::vector<SeenRequest> requests_;
  std::list<std::thread> threads_;
  int connections_ = 0;
  std::atomic<int> gone_{0};
  std::thread accept_;
};

}  // namespace headrace::fakes
