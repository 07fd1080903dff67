#include "sidecar/remote/retry.h"

#include <curl/curl.h>

#include <algorithm>
#include <charconv>
#include <ctime>

namespace headrace::side {
namespace {

using std::chrono::milliseconds;

// Seconds, or a date; nothing if it is neither.
std::optional<milliseconds> RetryAfter(const std::string& text) {
  if (text.empty()) return {};
  int64_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size()) {
    const time_t date = curl_getdate(text.c_str(), nullptr);
    if (date < 0) return {};
    seconds = static_cast<int64_t>(date - std::time(nullptr));
  }
  return milliseconds(std::clamp<int64_t>(seconds, 0, 60) * 1000);
}

}  // namespace

std::string Reply::Header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? std::string() : found->second;
}

Fate FateOf(const Reply& reply) {
  switch (reply.status) {
    case 0: return reply.fatal ? Fate::kFailed : Fate::kAgain;
    case 200:
    case 206: return Fate::kDone;
    case 429:
    case 503: return Fate::kThrottled;
    case 408:
    case 500:
    case 502:
    case 504: return Fate::kAgain;
    // S3's name for a connection that fell silent while it was being used.
    case 400: return reply.text.find("<Code>RequestTimeout</Code>") != std::string::npos ? Fate::kAgain : Fate::kFailed;
    default: return Fate::kFailed;
  }
}

milliseconds RetryPolicy::DelayAfter(const Reply& reply, uint64_t random) const {
  const int doublings = std::clamp(reply.attempts - 1, 0, 20);
  const milliseconds most = std::min(first_delay * (int64_t{1} << doublings), most_delay);
  const milliseconds jitter(static_cast<int64_t>(random % static_cast<uint64_t>(most.count() + 1)));
  return RetryAfter(reply.Header("retry-after")).value_or(milliseconds(0)) + jitter;
}

void UsualTime::Add(milliseconds took) {
  deviation_ = (3 * deviation_ + std::chrono::abs(mean_ - took)) / 4;
  mean_ = (7 * mean_ + took) / 8;
}

milliseconds RetryPolicy::FirstByteTimeout(const UsualTime& usual, int earlier_attempts) const {
  return std::min(std::max(usual.most(), first_byte) * (1 << std::clamp(earlier_attempts, 0, 10)), most_first_byte);
}

}  // namespace headrace::side
