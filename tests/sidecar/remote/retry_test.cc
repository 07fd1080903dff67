#include "sidecar/remote/retry.h"

#include <gtest/gtest.h>

#include "sidecar/remote/pace.h"

namespace headrace::side {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Retry, KnowsWhatMayPass) {
  EXPECT_EQ(FateOf({.status = 200}), Fate::kDone);
  EXPECT_EQ(FateOf({.status = 206}), Fate::kDone);
  for (const int status : {429, 503}) EXPECT_EQ(FateOf({.status = status}), Fate::kThrottled);
  for (const int status : {0, 408, 500, 502, 504}) EXPECT_EQ(FateOf({.status = status}), Fate::kAgain);
  for (const int status : {301, 400, 401, 403, 404, 412, 416}) EXPECT_EQ(FateOf({.status = status}), Fate::kFailed);
  EXPECT_EQ(FateOf({.status = 0, .fatal = true}), Fate::kFailed);
}

TEST(Retry, WaitsLongerEachTimeWithFullJitter) {
  const RetryPolicy policy;
  for (int attempts = 1; attempts < 20; ++attempts) {
    const int64_t most = std::min<int64_t>(int64_t{50} << (attempts - 1), 10000);
    const Reply reply{.attempts = attempts};
    EXPECT_EQ(policy.DelayAfter(reply, 0), milliseconds(0));
    EXPECT_EQ(policy.DelayAfter(reply, static_cast<uint64_t>(most)), milliseconds(most));
    EXPECT_LE(policy.DelayAfter(reply, UINT64_MAX), milliseconds(most));
  }
}

TEST(Retry, AddsTheJitterToWhatTheServerAsksFor) {
  const RetryPolicy policy;
  const auto after = [&](const std::string& value) {
    return policy.DelayAfter({.status = 503, .headers = {{"retry-after", value}}, .attempts = 1}, 7);
  };
  EXPECT_EQ(after("3"), seconds(3) + milliseconds(7));
  EXPECT_EQ(after("9999"), seconds(60) + milliseconds(7));
  EXPECT_EQ(after("-5"), milliseconds(7));
  EXPECT_EQ(after("soon"), milliseconds(7));
  EXPECT_EQ(after("Wed, 21 Oct 2015 07:28:00 GMT"), milliseconds(7));  // over
}

TEST(Retry, GivesSlowServersMoreTime) {
  const RetryPolicy policy;
  UsualTime fast;
  for (int i = 0; i < 100; ++i) fast.Add(milliseconds(20));
  EXPECT_EQ(policy.FirstByteTimeout(fast, 0), milliseconds(300));
  EXPECT_EQ(policy.FirstByteTimeout(fast, 2), milliseconds(1200));
  EXPECT_EQ(policy.FirstByteTimeout(fast, 60), seconds(30));
  UsualTime slow;
  for (int i = 0; i < 100; ++i) slow.Add(milliseconds(900));
  EXPECT_GE(policy.FirstByteTimeout(slow, 0), milliseconds(880));  // halves of a millisecond are lost
  EXPECT_LE(policy.FirstByteTimeout(slow, 0), milliseconds(1000));
  UsualTime varying;
  for (int i = 0; i < 100; ++i) varying.Add(milliseconds(i % 2 == 0 ? 100 : 900));
  EXPECT_GE(policy.FirstByteTimeout(varying, 0), milliseconds(1500));
}

// Replies of which the n-th is throttled where `throttled(n)`.
template <typename Throttled>
void Reply(Pace* pace, int replies, Throttled throttled) {
  for (int n = 0; n < replies; ++n) throttled(n) ? pace->Throttled() : pace->Answered();
}

TEST(Pace, HalvesOnceForABurstAndComesBack) {
  Pace pace;
  const int before = pace.limit();
  // All that are under way are refused, and then answered at the second try.
  Reply(&pace, 2 * before, [&](int n) { return n < before; });
  EXPECT_EQ(pace.limit(), (before + 1) / 2);
  // One more for as many answers as are allowed: 8 + 9 + ... + 15 to get from 8 to 16.
  int answers = 0;
  for (; pace.limit() < before; ++answers) pace.Answered();
  EXPECT_EQ(answers, (8 + 15) * 8 / 2);
}

TEST(Pace, FallsWhileAHostRefuses) {
  Pace pace;
  Reply(&pace, 1000, [](int) { return true; });
  EXPECT_EQ(pace.limit(), 1);
}

TEST(Pace, DoesNotMindAFewRefusals) {
  Pace pace;
  Reply(&pace, 10000, [](int n) { return n % 20 == 7; });
  EXPECT_EQ(pace.limit(), Pace::kMost);
  EXPECT_GT(Pace::kMost, Pace::kFirst);
}

}  // namespace
}  // namespace headrace::side
