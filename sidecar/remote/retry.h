// Which replies are worth another try, and when. The same for every read of every store.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace headrace::side {

// What came of one attempt at a request.
struct Reply {
  int status = 0;      // of HTTP; 0: no whole reply came, and `error` says why
  std::string error;   // curl's words; no secrets
  bool fatal = false;  // of those without a reply: trying again cannot help (a certificate, say)
  std::map<std::string, std::string> headers;  // names in lower case
  std::string text;                            // the body, where it did not go into memory of the caller's
  size_t received = 0;                         // bytes of the body that did
  int attempts = 0;                            // made so far, this one included

  std::string Header(const std::string& name) const;  // "" if absent
};

enum class Fate {
  kDone,
  kAgain,      // likely to pass: no reply, a reset, a server's error
  kThrottled,  // the same, and the server asks for fewer requests
  kFailed,     // will be the same however often it is asked
};

// By status, as S3, GCS and web servers use them.
Fate FateOf(const Reply& reply);

// How long a host usually takes to answer: running mean and deviation, as TCP has them of round trips (RFC 6298).
class UsualTime {
 public:
  void Add(std::chrono::milliseconds took);
  // What nearly none exceeds.
  std::chrono::milliseconds most() const { return mean_ + 4 * deviation_; }

 private:
  std::chrono::milliseconds mean_{200};  // before the first answer
  std::chrono::milliseconds deviation_{100};
};

// The defaults are what loaders use: 10 attempts take 12 seconds of waiting on average, and 23 at most.
struct RetryPolicy {
  int max_attempts = 10;  // at one request, the first included
  std::chrono::milliseconds first_delay{50};
  std::chrono::milliseconds most_delay{10000};
  // A first byte that takes longer, once the request is sent, than the host's times say (UsualTime) and than this, is
  // given up and asked for again over another connection; twice as long with each attempt, up to the most.
  std::chrono::milliseconds first_byte{300};
  std::chrono::milliseconds most_first_byte{30000};
  // So is the rest of a body that stops for so long.
  std::chrono::milliseconds stalled{5000};

  // How long to wait after reply.attempts attempts: exponential with full jitter, uniform from 0 to first_delay *
  // 2^(attempts - 1), most_delay at most, on top of what the reply's Retry-After asks for, a minute at most. `random`
  // is any number.
  std::chrono::milliseconds DelayAfter(const Reply& reply, uint64_t random) const;
  std::chrono::milliseconds FirstByteTimeout(const UsualTime& usual, int earlier_attempts) const;
};

}  // namespace headrace::side
