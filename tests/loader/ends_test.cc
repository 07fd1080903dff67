// Epochs of several workers with unequal data end together; a worker that dies is named; one that comes back is waited
// for.
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <random>
#include <thread>

#include "tests/loader/run.h"
#include "tests/sidecar/files.h"

namespace headrace::testing {
namespace {

using ::testing::HasSubstr;

constexpr int kWorkers = 3;

class Ends : public ::testing::Test {
 protected:
  // Worker w's file holds records[w] records, the first of which is 100 * w.
  std::string Files(const std::vector<int64_t>& records) {
    for (size_t w = 0; w < records.size(); ++w) {
      std::string bytes;
      for (int64_t i = 0; i < records[w]; ++i) {
        bytes += side::TFRecordOf(side::ExampleOf({{"x", side::Int64List({static_cast<int64_t>(w) * 100 + i})}}));
      }
      std::ofstream(data_.path() + "/" + std::to_string(w), std::ios::binary) << bytes;
    }
    return R"({"source": {"files": {"paths": [")" + data_.path() + R"(/*"]}},
               "features": [{"name": "x", "dtype": "int64", "shape": []}],
               "pipeline": [{"shuffle": {"bufferSize": 5}}, {"batch": {"size": 3}}],
               "distribution": {"rebatch": "Continuous"}})";
  }

  Folder data_;
};

TEST_F(Ends, AThousandEpochsOfUnevenShardsEndAtTheSameStep) {
  constexpr int kEpochs = 1000;
  // One record a step and worker: as many steps as the longest file has records.
  const LoaderRun run(Files({2, 7, 4}), kWorkers, 1);
  std::vector<std::vector<size_t>> steps(kWorkers);
  std::vector<std::thread> trainers;
  for (int w = 0; w < kWorkers; ++w) {
    trainers.emplace_back([&, w] {
      Reader reader(run.directory(w));
      for (int epoch = 0; epoch < kEpochs && reader.error().empty(); ++epoch) {
        reader.Start();
        const std::vector<Reader::Step> rest = reader.Rest();
        steps[static_cast<size_t>(w)].push_back(rest.size());
        size_t records = 0;
        for (const Reader::Step& step : rest) records += step[0].size();
        ASSERT_EQ(records, (std::vector<size_t>{2, 7, 4})[static_cast<size_t>(w)]) << "epoch " << epoch;
      }
      EXPECT_EQ(reader.error(), "");
    });
  }
  for (std::thread& trainer : trainers) trainer.join();
  ASSERT_EQ(steps[0].size(), static_cast<size_t>(kEpochs));
  EXPECT_EQ(steps[0], steps[1]);
  EXPECT_EQ(steps[0], steps[2]);
  EXPECT_EQ(steps[0], std::vector<size_t>(kEpochs, steps[0][0]));
}

TEST_F(Ends, AWorkerThatDiesIsNamedByTheOthers) {
  using Clock = std::chrono::steady_clock;
  setenv("HEADRACE_LOADER_TIMEOUT", "1", 1);  // the victim's trainer need not wait for it
  std::mt19937 random(7);
  for (int victim = 0; victim < kWorkers; ++victim) {
    LoaderRun run(Files({20, 70, 40}), kWorkers, 1);
    std::vector<std::string> errors(kWorkers);
    std::vector<Clock::time_point> told(kWorkers);
    std::vector<std::thread> trainers;
    std::atomic<int> met{0};
    std::atomic<uint32_t> read{0};  // steps, of all workers
    for (int w = 0; w < kWorkers; ++w) {
      trainers.emplace_back([&, w] {
        Reader reader(run.directory(w));
        bool counted = false;
        while (reader.error().empty()) {
          reader.Start();
          while (!reader.Next().empty()) ++read;
          // An epoch that has ended shows that all loaders have met; before, one that dies may as well be on its way.
          if (!std::exchange(counted, true)) ++met;
        }
        told[static_cast<size_t>(w)] = Clock::now();
        errors[static_cast<size_t>(w)] = reader.error();
      });
    }
    while (met < kWorkers) std::this_thread::yield();
    // At any moment of any epoch.
    const uint32_t moment = read + random() % 500;
    while (read < moment) std::this_thread::yield();
    run.Kill(victim, SIGKILL);
    const Clock::time_point died = Clock::now();
    for (std::thread& trainer : trainers) trainer.join();
    for (int w = 0; w < kWorkers; ++w) {
      if (w == victim) continue;
      EXPECT_THAT(errors[static_cast<size_t>(w)], HasSubstr("worker " + std::to_string(victim))) << "by worker " << w;
      EXPECT_LT(told[static_cast<size_t>(w)] - died, std::chrono::seconds(10)) << "by worker " << w;
    }
  }
}

TEST_F(Ends, ALoaderThatComesBackIsWaitedFor) {
  LoaderRun run(Files({20, 70, 40}), kWorkers, 1);
  std::vector<std::vector<std::vector<Reader::Step>>> epochs(kWorkers);
  std::atomic<int> ended{0};
  std::vector<std::thread> trainers;
  for (int w = 0; w < kWorkers; ++w) {
    trainers.emplace_back([&, w] {
      Reader reader(run.directory(w));
      for (int epoch = 0; epoch < 30; ++epoch) {
        reader.Start();
        epochs[static_cast<size_t>(w)].push_back(reader.Rest());
        ++ended;
      }
      EXPECT_EQ(reader.error(), "") << "worker " << w;
    });
  }
  for (int kill = 0; kill < 6; ++kill) {
    while (ended < 12 * (kill + 1)) std::this_thread::yield();
    run.Kill(kill % kWorkers, SIGKILL);
    run.StartLoader(kill % kWorkers);
  }
  for (std::thread& trainer : trainers) trainer.join();
  for (size_t w = 0; w < kWorkers; ++w) {
    for (size_t epoch = 0; epoch < epochs[w].size(); ++epoch) {
      EXPECT_EQ(epochs[w][epoch].size(), epochs[0][epoch].size()) << "worker " << w << ", epoch " << epoch;
      std::vector<int64_t> records;
      for (const Reader::Step& step : epochs[w][epoch]) records.insert(records.end(), step[0].begin(), step[0].end());
      std::sort(records.begin(), records.end());
      std::vector<int64_t> all((std::vector<size_t>{20, 70, 40})[w]);
      std::iota(all.begin(), all.end(), static_cast<int64_t>(w) * 100);
      EXPECT_EQ(records, all) << "worker " << w << ", epoch " << epoch << ": nothing lost, nothing twice";
    }
  }
}

}  // namespace
}  // namespace headrace::testing
