#include "operator/kube/work_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace headrace::kube {
namespace {

using namespace std::chrono_literals;

class WorkQueueTest : public ::testing::Test {
 protected:
  WorkQueue::TimePoint now_{};
  WorkQueue queue_{{.now = [this] { return now_; }}};
};

TEST_F(WorkQueueTest, GivesKeysInOrderAndOnce) {
  queue_.Add("a");
  queue_.Add("b");
  queue_.Add("a");
  EXPECT_EQ(queue_.TryGet(), "a");
  EXPECT_EQ(queue_.TryGet(), "b");
  EXPECT_EQ(queue_.TryGet(), std::nullopt);
}

TEST_F(WorkQueueTest, KeyAddedWhileWorkedOnComesAgainOnlyAfterDone) {
  queue_.Add("a");
  ASSERT_EQ(queue_.TryGet(), "a");
  queue_.Add("a");
  queue_.Add("a");
  EXPECT_EQ(queue_.TryGet(), std::nullopt);
  queue_.Done("a");
  EXPECT_EQ(queue_.TryGet(), "a");
  queue_.Done("a");
  EXPECT_EQ(queue_.TryGet(), std::nullopt);
}

TEST_F(WorkQueueTest, DelayedKeyComesWhenDueAndTheEarliestCounts) {
  queue_.AddAfter("a", 100ms);
  queue_.AddAfter("a", 50ms);
  queue_.AddAfter("a", 200ms);
  now_ += 49ms;
  EXPECT_EQ(queue_.TryGet(), std::nullopt);
  now_ += 1ms;
  EXPECT_EQ(queue_.TryGet(), "a");
  queue_.Done("a");
  now_ += 1000ms;
  EXPECT_EQ(queue_.TryGet(), std::nullopt);
}

TEST_F(WorkQueueTest, BackoffDoublesToItsCapAndIsForgotten) {
  std::vector<int64_t> delays;
  for (int i = 0; i < 20; ++i) {
    queue_.AddRateLimited("a");
    int64_t waited = 0;
    for (int64_t step = 1; !queue_.TryGet(); step = 1) {
      now_ += WorkQueue::Duration(step);
      waited += step;
      ASSERT_LT(waited, 1'100'000);
    }
    queue_.Done("a");
    delays.push_back(waited);
  }
  EXPECT_EQ(delays[0], 5);
  EXPECT_EQ(delays[1], 10);
  EXPECT_EQ(delays[10], 5120);
  EXPECT_EQ(delays[17], 655360);
  EXPECT_EQ(delays[18], 1'000'000);
  EXPECT_EQ(delays[19], 1'000'000);
  EXPECT_EQ(queue_.Failures("a"), 20);
  queue_.Forget("a");
  EXPECT_EQ(queue_.Failures("a"), 0);
  queue_.AddRateLimited("a");
  now_ += 5ms;
  EXPECT_EQ(queue_.TryGet(), "a");
}

TEST_F(WorkQueueTest, NewsPassesTheBacklog) {
  for (const char* key : {"a", "b", "c"}) queue_.Add(key, Priority::kBacklog);
  queue_.Add("d");
  queue_.Add("b");                      // it changed while it waited
  queue_.Add("d", Priority::kBacklog);  // waits as what it is
  EXPECT_EQ(queue_.GetStats().news, 2u);
  EXPECT_EQ(queue_.GetStats().backlog, 2u);
  for (const char* key : {"d", "b", "a", "c"}) EXPECT_EQ(queue_.TryGet(), key);
  EXPECT_EQ(queue_.TryGet(), std::nullopt);
}

TEST_F(WorkQueueTest, AKeyThatChangedWhileWorkedOnComesAgainAsNews) {
  queue_.Add("a", Priority::kBacklog);
  ASSERT_EQ(queue_.TryGet(), "a");
  queue_.Add("a", Priority::kBacklog);
  queue_.Add("b", Priority::kBacklog);
  queue_.Add("a");
  queue_.Done("a");
  EXPECT_EQ(queue_.TryGet(), "a");
  EXPECT_EQ(queue_.TryGet(), "b");
}

TEST_F(WorkQueueTest, WhatIsTriedAgainKeepsItsPriority) {
  queue_.Add("old", Priority::kBacklog);
  ASSERT_EQ(queue_.TryGet(), "old");
  queue_.AddRateLimited("old");
  queue_.Done("old");
  queue_.Add("new");
  ASSERT_EQ(queue_.TryGet(), "new");
  queue_.AddRateLimited("new");
  queue_.Done("new");
  now_ += 5ms;
  EXPECT_EQ(queue_.TryGet(), "new");
  EXPECT_EQ(queue_.TryGet(), "old");
}

TEST_F(WorkQueueTest, WhatIsPutOffComesLastAndPassesOnNews) {
  queue_.Add("put off", Priority::kPutOff);
  queue_.Add("used after all", Priority::kPutOff);
  queue_.Add("old", Priority::kBacklog);
  queue_.Add("new");
  EXPECT_EQ(queue_.GetStats().put_off, 2u);
  queue_.Add("used after all");
  EXPECT_EQ(queue_.GetStats().put_off, 1u);
  for (const char* key : {"new", "used after all", "old", "put off"}) EXPECT_EQ(queue_.TryGet(), key);
}

TEST_F(WorkQueueTest, HasTimeForWhatIsPutOffWhileNothingElseWaits) {
  queue_.Add("a", Priority::kBacklog);
  queue_.Add("b", Priority::kBacklog);
  ASSERT_EQ(queue_.TryGet(), "a");
  EXPECT_FALSE(queue_.HasTimeFor("a")) << "b waits";
  queue_.Add("a", Priority::kPutOff);
  queue_.Done("a");
  ASSERT_EQ(queue_.TryGet(), "b");
  EXPECT_TRUE(queue_.HasTimeFor("b")) << "a was put off, and b need not be";
  queue_.Done("b");
  ASSERT_EQ(queue_.TryGet(), "a");
  queue_.Add("c");
  EXPECT_TRUE(queue_.HasTimeFor("a")) << "its turn had come before c did, or it would never come";
}

TEST_F(WorkQueueTest, AKeyThatChangesAllTheTimeTakesATenth) {
  const auto work = [&](WorkQueue::Duration time) {
    ASSERT_EQ(queue_.TryGet(), "a");
    now_ += time;
    queue_.Done("a");
  };
  queue_.Add("a");
  work(10ms);
  int looks = 0;
  for (int i = 0; i < 1000; ++i) {  // for a second
    queue_.Add("a");
    if (queue_.TryGet()) {
      ++looks;
      now_ += 10ms;
      queue_.Add("a");  // and while it is being worked on
      queue_.Done("a");
    }
    now_ += 1ms;
    queue_.Add("b");  // others need not wait
    ASSERT_EQ(queue_.TryGet(), "b");
    queue_.Done("b");
  }
  EXPECT_GE(looks, 9);
  EXPECT_LE(looks, 11);
  // What was new last is looked at, too.
  now_ += 90ms;
  work(1h);
  queue_.Add("a");
  EXPECT_EQ(queue_.TryGet(), std::nullopt);
  now_ += 1s;
  work(0ms);
  now_ += 1h;
  queue_.Add("a");
  work(1ms);
}

TEST_F(WorkQueueTest, ARestIsForNewsOnly) {
  queue_.Add("a");
  ASSERT_EQ(queue_.TryGet(), "a");
  now_ += 100ms;
  queue_.Add("a", Priority::kPutOff);
  queue_.Done("a");
  EXPECT_EQ(queue_.TryGet(), "a");
  now_ += 100ms;
  queue_.Done("a");
  queue_.Add("a", Priority::kBacklog);
  EXPECT_EQ(queue_.TryGet(), "a");
}

TEST_F(WorkQueueTest, ATryAgainWaitsForTheLongerOfBackoffAndRest) {
  queue_.Add("a");
  ASSERT_EQ(queue_.TryGet(), "a");
  now_ += 2ms;
  queue_.AddRateLimited("a");  // 5 ms
  queue_.Done("a");            // 18 ms
  now_ += 17ms;
  EXPECT_EQ(queue_.TryGet(), std::nullopt);
  now_ += 1ms;
  EXPECT_EQ(queue_.TryGet(), "a");
}

TEST_F(WorkQueueTest, StatsSeeDepthAndUnfinishedWork) {
  queue_.Add("a");
  queue_.Add("b");
  queue_.Add("c");
  ASSERT_TRUE(queue_.TryGet());
  now_ += 2000ms;
  ASSERT_TRUE(queue_.TryGet());
  now_ += 1000ms;
  const WorkQueue::Stats stats = queue_.GetStats();
  EXPECT_EQ(stats.news, 1u);
  EXPECT_EQ(stats.backlog, 0u);
  EXPECT_DOUBLE_EQ(stats.unfinished_seconds, 4.0);
  EXPECT_DOUBLE_EQ(stats.longest_seconds, 3.0);
}

TEST(WorkQueueThreads, ShutDownWakesWaiters) {
  WorkQueue queue({});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { EXPECT_EQ(queue.Get(), std::nullopt); });
  queue.ShutDown();
  for (std::thread& thread : threads) thread.join();
  queue.Add("late");
  EXPECT_EQ(queue.Get(), std::nullopt);
}

TEST(WorkQueueThreads, ASleeperWakesForAnEarlierKey) {
  WorkQueue queue({});
  queue.AddAfter("late", 1h);
  std::thread adder([&] { queue.AddAfter("early", 1ms); });
  EXPECT_EQ(queue.Get(), "early");
  adder.join();
}

TEST(WorkQueueThreads, NeverTheSameKeyOnTwoWorkersAndNoneIsLost) {
  constexpr int kKeys = 7, kAdds = 3000, kWorkers = 4;
  WorkQueue queue({});
  std::atomic<int> inside[kKeys] = {};
  std::atomic<int> seen[kKeys] = {};   // the newest value a worker has acted on
  std::atomic<int> value[kKeys] = {};  // what the adders last wrote
  std::atomic<int> settled = 0;
  std::vector<std::thread> workers;
  for (int i = 0; i < kWorkers; ++i) {
    workers.emplace_back([&] {
      while (const auto key = queue.Get()) {
        const int k = std::stoi(*key);
        EXPECT_EQ(inside[k].fetch_add(1), 0);
        seen[k] = value[k].load();
        inside[k].fetch_sub(1);
        queue.Done(*key);
        if (seen[k] == kAdds) {
          ++settled;
          settled.notify_all();
        }
      }
    });
  }
  std::vector<std::thread> adders;
  for (int k = 0; k < kKeys; ++k) {
    adders.emplace_back([&, k] {
      for (int n = 1; n <= kAdds; ++n) {
        value[k] = n;
        queue.Add(std::to_string(k));
      }
    });
  }
  for (std::thread& thread : adders) thread.join();
  const auto all_seen = [&] {
    for (const auto& s : seen)
      if (s != kAdds) return false;
    return true;
  };
  for (int before = settled; !all_seen(); before = settled) settled.wait(before);
  queue.ShutDown();
  for (std::thread& thread : workers) thread.join();
}

}  // namespace
}  // namespace headrace::kube
