#include "sidecar/collective/rounds.h"

#include <gmock/gmock.h>

#include "tests/sidecar/collective/agreements.h"

namespace headrace::side {
namespace {

using ::testing::HasSubstr;

// As an exchange's thread does it: round 0 is that of the id.
class RoundsTest : public AgreementTest {
 protected:
  void StartThree() {
    for (int64_t w = 0; w < 3; ++w) workers_.push_back(Start(Options(w, 3)));
  }
  Rounds& Of(size_t worker) { return workers_[worker]->rounds(); }

  // Brings all through round `round`, in which worker 0 says what `go` makes of each other's wish.
  std::vector<wire::Go> RunRound(uint64_t round, const std::function<wire::Go(const wire::Ready&)>& go) {
    std::vector<wire::Go> got(2);
    std::vector<std::thread> others;
    for (size_t w = 1; w < 3; ++w) {
      others.emplace_back([&, w] {
        const auto begun = Of(w).AwaitGo({round, 7, w * 10, 3}, kNo);
        EXPECT_TRUE(begun.ok()) << begun.status().ToString();
        if (begun.ok()) got[w - 1] = *begun;
      });
    }
    const auto ready = Of(0).AwaitAll(round, kNo);
    EXPECT_TRUE(ready.ok()) << ready.status().ToString();
    std::vector<wire::Go> said;
    for (const wire::Ready& wish : *ready) said.push_back(go(wish));
    Of(0).SayGo(said);
    for (std::thread& other : others) other.join();
    return got;
  }

  std::vector<std::unique_ptr<Agreement>> workers_;
};

TEST_F(RoundsTest, AllBeginOnceAllAreReady) {
  StartThree();
  const auto answer = [](const wire::Ready& wish) {
    return wire::Go{wish.round, wish.epoch, wish.delivery + 1, wish.delivery * 100, false, std::string(128, '\0')};
  };
  for (uint64_t round = 0; round < 100; ++round) {
    const std::vector<wire::Go> got = RunRound(round, answer);
    EXPECT_EQ(got[0], (wire::Go{round, 7, 11, 1000, false, std::string(128, '\0')}));
    EXPECT_EQ(got[1], (wire::Go{round, 7, 21, 2000, false, std::string(128, '\0')}));
  }
}

TEST_F(RoundsTest, OneReasonEndsItForAll) {
  StartThree();
  Of(2).End(Unavailable("worker 2: ncclRemoteError"));
  EXPECT_EQ(Of(1).AwaitGo({}, kNo).status().message(), "worker 2: ncclRemoteError");
  EXPECT_EQ(Of(0).AwaitAll(0, kNo).status().message(), "worker 2: ncclRemoteError");
  EXPECT_EQ(Of(0).why_ended().code(), Code::kUnavailable);
  Of(0).End(Unavailable("later"));
  EXPECT_EQ(Of(0).why_ended().message(), "worker 2: ncclRemoteError");
  EXPECT_TRUE(workers_[0]->failure().ok()) << "the run goes on";
  // Also for one that comes later: a loader that was restarted.
  workers_[1].reset();
  workers_[1] = Start(Options(1, 3));
  EXPECT_EQ(Of(1).AwaitGo({}, kNo).status().message(), "worker 2: ncclRemoteError");
}

TEST_F(RoundsTest, WhoLeavesInTheMiddleIsNamed) {
  StartThree();
  RunRound(0, [](const wire::Ready& wish) { return wire::Go{.round = wish.round}; });
  workers_[2].reset();
  const Status why = Of(1).AwaitGo({.round = 1}, kNo).status();
  EXPECT_EQ(why.code(), Code::kCancelled) << "in order";
  EXPECT_THAT(why.message(), HasSubstr("worker 2 (host pod-2)"));
}

TEST_F(RoundsTest, WhoLeavesBeforeTheBeginMayComeBack) {
  StartThree();
  std::thread first([&] { EXPECT_FALSE(Of(2).AwaitGo({}, [n = 0]() mutable { return ++n > 2; }).ok()); });
  first.join();
  workers_[2].reset();
  workers_[2] = Start(Options(2, 3));
  const auto got = RunRound(0, [](const wire::Ready& wish) { return wire::Go{.round = wish.round, .id = "id"}; });
  EXPECT_EQ(got[1].id, "id");
}

TEST_F(RoundsTest, GivesUpWhenAsked) {
  StartThree();
  EXPECT_EQ(Of(0).AwaitAll(0, [] { return true; }).status().code(), Code::kCancelled);
  EXPECT_EQ(Of(1).AwaitGo({}, [] { return true; }).status().code(), Code::kCancelled);
}

}  // namespace
}  // namespace headrace::side
