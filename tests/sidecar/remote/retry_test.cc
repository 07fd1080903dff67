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
  EXPECT_EQ(policy.FirstByteTimeout(milliseconds(20), 0), milliseconds(500));
  EXPECT_EQ(policy.FirstByteTimeout(milliseconds(900), 0), milliseconds(3600));
  EXPECT_EQ(policy.FirstByteTimeout(milliseconds(20), 2), seconds(2));
  EXPECT_EQ(policy.FirstByteTimeout(milliseconds(20), 60), seconds(30));
}

TEST(Pace, HalvesOnceForABurstAndComesBack) {
  Pace pace;
  const Pace::Time now{seconds(100)};
  const int before = pace.limit();
  for (int i = 0; i < 10; ++i) pace.Throttled(now + milliseconds(i));
  EXPECT_EQ(pace.limit(), before / 2);
  pace.Throttled(now + seconds(1));
  EXPECT_EQ(pace.limit(), before / 4);
  // One more for as many answers as are allowed: 4 + 5 + ... + 15 to get from 4 to 16.
  int answers = 0;
  while (pace.limit() < before) {
    pace.Answered();
    ++answers;
  }
  EXPECT_EQ(answers, (4 + 15) * 12 / 2);
}

TEST(Pace, StaysWithinItsBounds) {
  Pace pace;
  for (int i = 0; i < 20; ++i) pace.Throttled(Pace::Time(seconds(100 + i)));
  EXPECT_EQ(pace.limit(), 1);
  for (int i = 0; i < 100000; ++i) pace.Answered();
  EXPECT_EQ(pace.limit(), Pace::kMost);
}

}  // namespace
}  // namespace headrace::side
