// What tests of agreements share: agreements that meet in a folder of the test's own, and epochs run as an engine runs
// them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <random>
#include <thread>
#include <vector>

#include "sidecar/collective/agreement.h"

namespace headrace::side {

inline const auto kNo = [] { return false; };

template <typename Condition>
bool Eventually(Condition condition, std::chrono::milliseconds limit = std::chrono::seconds(20)) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

// A folder of its own for each test; a socket's path must be short.
class AgreementTest : public ::testing::Test {
 protected:
  AgreementTest() {
    char folder[] = "/tmp/headrace-agreement-XXXXXX";
    folder_ = mkdtemp(folder);
  }
  ~AgreementTest() override { std::filesystem::remove_all(folder_); }

  std::string SocketPath() const { return folder_ + "/coordinator.sock"; }

  AgreementOptions Options(int64_t worker, int64_t workers) const {
    AgreementOptions options;
    options.topology = {workers, worker, 1};
    options.run_id = "run";
    options.plan_hash = "0123456789abcdef";
    options.coordinator = "unix:" + SocketPath();
    options.host_name = "pod-" + std::to_string(worker);
    return options;
  }

  static std::unique_ptr<Agreement> Start(const AgreementOptions& options) {
    auto agreement = Agreement::Start(options);
    EXPECT_TRUE(agreement.ok()) << agreement.status().ToString();
    return std::move(agreement).value();
  }

  std::string folder_;
};

// As the engine does: delivers its own steps, then batches without rows until nobody has data. The end of the epoch.
inline Result<int64_t> RunEpoch(Agreement& agreement, uint64_t epoch, int64_t own_steps) {
  agreement.Announce(epoch, 0, own_steps == 0);
  for (int64_t step = 1; step <= own_steps; ++step) agreement.Announce(epoch, step, step == own_steps);
  int64_t step = own_steps;
  for (;; ++step) {
    const Result<bool> more = agreement.AnyHasStep(epoch, step, kNo);
    if (!more.ok()) return more.status();
    if (!*more) return step;
  }
}

// Runs `epochs` on agreements that are there already, and checks that all end where the one with the most data does.
inline void ExpectSameEnds(const std::vector<Agreement*>& workers, uint64_t epochs, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::vector<int64_t>> steps(workers.size(), std::vector<int64_t>(epochs));
  for (auto& of_worker : steps)
    for (int64_t& number : of_worker) number = static_cast<int64_t>(random() % 12);
  std::vector<std::vector<int64_t>> ends(workers.size());
  std::vector<std::thread> threads;
  for (size_t w = 0; w < workers.size(); ++w) {
    threads.emplace_back([&, w] {
      for (uint64_t epoch = 0; epoch < epochs; ++epoch) {
        const Result<int64_t> end = RunEpoch(*workers[w], epoch, steps[w][epoch]);
        if (!end.ok()) {
          ADD_FAILURE() << "worker " << w << ", epoch " << epoch << ": " << end.status().ToString();
          return;
        }
        ends[w].push_back(*end);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<int64_t> expected(epochs, 0);
  for (const auto& of_worker : steps)
    for (uint64_t epoch = 0; epoch < epochs; ++epoch) expected[epoch] = std::max(expected[epoch], of_worker[epoch]);
  for (size_t w = 0; w < workers.size(); ++w) EXPECT_EQ(ends[w], expected) << "worker " << w;
}

}  // namespace headrace::side
