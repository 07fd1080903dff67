#include "sidecar/collective/local.h"

#include <gtest/gtest.h>

#include <thread>

namespace headrace::side {
namespace {

const auto kNo = [] { return false; };

TEST(LocalTest, TheNetworkHearsOfStepsOnlyOnceSomebodyWaits) {
  Local local;
  EXPECT_FALSE(local.Announce(0, 1, false));
  EXPECT_FALSE(local.Announce(0, 2, true));
  EXPECT_FALSE(local.Announce(1, 1, false));
  local.Watch(2);
  EXPECT_TRUE(local.Announce(1, 2, false));
  EXPECT_FALSE(local.Announce(1, 2, false)) << "no news";
  EXPECT_TRUE(local.Announce(2, 0, false)) << "who waits in epoch 1 must hear that it was left";
  EXPECT_FALSE(local.Announce(2, 1, false));
}

TEST(LocalTest, ThePositionHoldsWhatWasLeft) {
  Local local;
  local.Announce(0, 4, true);
  local.Announce(1, 2, false);
  local.Announce(5, 3, false);
  Local::Position position = local.position();
  EXPECT_EQ(position.epoch, 5u);
  EXPECT_EQ(position.steps, 3);
  EXPECT_FALSE(position.ended);
  EXPECT_EQ(position.finals, (std::map<uint64_t, int64_t>{{0, 4}, {1, 2}}));
  local.Announce(4, 9, true);
  local.Announce(5, 1, false);
  EXPECT_EQ(local.position().steps, 3) << "announcements only add";
  EXPECT_EQ(local.position().epoch, 5u);
  local.Forget(1);
  EXPECT_EQ(local.position().finals, (std::map<uint64_t, int64_t>{{1, 2}}));
}

TEST(LocalTest, AnswersWhatIsKnown) {
  Local local;
  local.Learn(0, {3, false});
  const auto ask = [&](int64_t step) {
    return local.AnyHasStep(
        0, step, [] { return true; }, [] {});
  };
  EXPECT_TRUE(*ask(2));
  EXPECT_EQ(ask(3).status().code(), Code::kCancelled) << "not known yet, and gave up";
  local.Learn(0, {4, true});
  EXPECT_TRUE(*ask(3));
  EXPECT_FALSE(*ask(4));
  local.Fail(Unavailable("worker 1 was lost"));
  EXPECT_FALSE(*ask(4)) << "what is known stays known";
  EXPECT_EQ(local.AnyHasStep(1, 0, kNo, [] {}).status().message(), "worker 1 was lost");
  EXPECT_EQ(local.failure().message(), "worker 1 was lost");
  local.Fail(Unavailable("worker 2 was lost"));
  EXPECT_EQ(local.failure().message(), "worker 1 was lost") << "the first stays";
}

TEST(LocalTest, ABlockedEpochIsAnErrorOnlyForWhoAsks) {
  Local local;
  local.Block(1, "worker 2 left");
  EXPECT_TRUE(local.failure().ok());
  EXPECT_EQ(local
                .AnyHasStep(
                    0, 0, [] { return true; }, [] {})
                .status()
                .code(),
            Code::kCancelled);
  EXPECT_EQ(local.AnyHasStep(1, 0, kNo, [] {}).status().message(), "worker 2 left");
  local.Block(wire::kNever, "");
  EXPECT_EQ(local
                .AnyHasStep(
                    1, 0, [] { return true; }, [] {})
                .status()
                .code(),
            Code::kCancelled);
}

TEST(LocalTest, WaitsUntilItLearns) {
  Local local;
  std::atomic<int> woken = 0;
  std::thread network([&] {
    while (local.position().waits_until != 1) std::this_thread::yield();
    local.Learn(0, {1, false});
    local.Learn(0, {1, true});
  });
  EXPECT_TRUE(*local.AnyHasStep(0, 0, kNo, [&] { ++woken; }));
  EXPECT_FALSE(*local.AnyHasStep(0, 1, kNo, [&] { ++woken; }));
  network.join();
  EXPECT_EQ(woken, 1) << "the network is told once an epoch";
}

}  // namespace
}  // namespace headrace::side
