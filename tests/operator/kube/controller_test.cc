#include "operator/kube/controller.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <stdexcept>

#include "operator/kube/work_queue.h"

namespace headrace::kube {
namespace {

using namespace std::chrono_literals;

// Runs `reconcile` on one key until `results` many results came, and returns them.
class ControllerTest : public ::testing::Test {
 protected:
  std::vector<std::string> Run(size_t results, std::function<Outcome(const std::string&)> reconcile, int workers = 4) {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<std::string> seen;
    Controller::Options options;
    options.name = "test";
    options.workers = workers;
    options.probe.on_reconcile = [&](const std::string& result, double) {
      const std::lock_guard lock(mutex);
      seen.push_back(result);
      changed.notify_all();
    };
    queue_.Add("ml/clicks");
    Controller controller(options, &queue_, std::move(reconcile));
    std::unique_lock lock(mutex);
    EXPECT_TRUE(changed.wait_for(lock, 10s, [&] { return seen.size() >= results; }));
    lock.unlock();
    controller.Stop();
    return seen;
  }
  WorkQueue queue_{{.base_delay = 1ms}};
};

TEST_F(ControllerTest, RetryableErrorsComeAgainUntilTheySucceed) {
  int calls = 0;
  EXPECT_EQ(Run(3,
                [&](const std::string&) {
                  return ++calls < 3 ? Outcome{Unavailable("not yet"), {}} : Outcome{};
                }),
            (std::vector<std::string>{"error", "error", "success"}));
  EXPECT_EQ(queue_.Failures("ml/clicks"), 0);
}

TEST_F(ControllerTest, TerminalErrorsAreNotRetried) {
  // A retry would come after 1 ms, before the 100 ms of the other key.
  queue_.AddAfter("ml/other", 100ms);
  std::vector<std::string> keys;
  EXPECT_EQ(Run(2,
                [&](const std::string& key) {
                  keys.push_back(key);
                  return key == "ml/clicks" ? Outcome{InvalidArgument("wrong"), {}} : Outcome{};
                }),
            (std::vector<std::string>{"terminal_error", "success"}));
}

TEST_F(ControllerTest, ExceptionsAreCountedAndRetried) {
  int calls = 0;
  EXPECT_EQ(Run(2,
                [&](const std::string&) -> Outcome {
                  if (++calls == 1) throw std::runtime_error("bug");
                  return {};
                }),
            (std::vector<std::string>{"panic", "success"}));
}

TEST_F(ControllerTest, RequeueAfterComesAgain) {
  int calls = 0;
  EXPECT_EQ(Run(2,
                [&](const std::string&) {
                  return ++calls == 1 ? Outcome{{}, 2ms} : Outcome{};
                }),
            (std::vector<std::string>{"requeue_after", "success"}));
}

TEST_F(ControllerTest, WhatIsPutOffComesWhenNothingElseWaits) {
  queue_.Add("ml/other", Priority::kBacklog);
  std::mutex mutex;
  std::vector<std::string> keys;
  const auto reconcile = [&](const std::string& key) -> Outcome {
    const std::lock_guard lock(mutex);
    keys.push_back(key);
    return {.status = {}, .put_off = keys.size() == 1};
  };
  EXPECT_EQ(Run(3, reconcile, 1), (std::vector<std::string>{"requeue", "success", "success"}));
  EXPECT_EQ(keys, (std::vector<std::string>{"ml/clicks", "ml/other", "ml/clicks"}));
}

}  // namespace
}  // namespace headrace::kube
