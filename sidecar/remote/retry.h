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

// Attempts at one request, the first included. With the delays below, 10 last 12 seconds on average, and 23 at most.
inline constexpr int kMaxAttempts = 10;
inline constexpr std::chrono::milliseconds kFirstDelay{50};
inline constexpr std::chrono::milliseconds kMostDelay{10000};

// How long to wait after the `attempts`-th one failed: exponential with full jitter, uniform from 0 to kFirstDelay *
// 2^(attempts - 1), kMostDelay at most, and on top of what the reply's Retry-After asks for, a minute at most. `random`
// is any number.
std::chrono::milliseconds DelayAfter(const Reply& reply, uint64_t random);

// A first byte that takes longer than this is given up and asked for again, over another connection: a multiple of what
// is usual there, doubled with each attempt.
std::chrono::milliseconds FirstByteTimeout(std::chrono::milliseconds usual, int earlier_attempts);

}  // namespace headrace::side
