// Whole pipelines on several workers: what strategies and policies make of one spec.
#include "sidecar/loader/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/sidecar/files.h"
#include "tests/sidecar/pipelines.h"

namespace headrace::side {
namespace {

using testing::ElementsAre;

TEST(ParameterServer, GivesEveryWorkerAllInBatchesOfItsOwnReplicas) {
  const std::string rest = R"(, "distribution": {"strategy": "ParameterServer"})";
  for (int64_t worker = 0; worker < 3; ++worker) {
    PipelineRun run(RangeSpec(8, R"([{"batch": {"size": 4}}])", rest), {3, worker, 2});
    const auto deliveries = run.Epoch();
    ASSERT_EQ(deliveries.size(), 4u);
    EXPECT_THAT(deliveries[0].Values<int64_t>(), ElementsAre(0, 1));
    EXPECT_THAT(deliveries[1].Values<int64_t>(), ElementsAre(2, 3));
    EXPECT_EQ(deliveries[3].replica, 1);
    EXPECT_THAT(deliveries[3].Values<int64_t>(), ElementsAre(6, 7));
  }
}

TEST(ParameterServer, ShufflesDifferentlyOnEachWorkerUnlessSeeded) {
  const auto order = [](const std::string& seed, const std::string& strategy, int64_t worker) {
    PipelineRun run(RangeSpec(100, R"([{"shuffle": {"bufferSize": 100)" + seed + R"(}}, {"batch": {"size": 10}}])",
                              R"(, "distribution": {"autoShardPolicy": "Off", "strategy": ")" + strategy + "\"}"),
                    {2, worker, 1});
    return run.Values<int64_t>();
  };
  auto first = order("", "ParameterServer", 0);
  EXPECT_NE(first, order("", "ParameterServer", 1));
  EXPECT_EQ(first, order("", "ParameterServer", 0));
  EXPECT_EQ(order(R"(, "seed": 3)", "ParameterServer", 0), order(R"(, "seed": 3)", "ParameterServer", 1));
  std::sort(first.begin(), first.end());
  std::vector<int64_t> all(100);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(first, all);
  EXPECT_EQ(order("", "MultiWorkerMirrored", 0), order("", "MultiWorkerMirrored", 1)) << "these share one order";
}

// Eight files of one record each, the record the file's number.
TEST(FilesShuffle, HasOneOrderOnAllWorkersSoThatNoFileIsLostOrReadTwice) {
  Folder folder;
  for (int64_t i = 0; i < 8; ++i) {
    folder.Write("f" + std::to_string(i), TFRecordOf(ExampleOf({{"x", Int64List({i})}})));
  }
  for (const std::string shuffle : {R"("bufferSize": 8)", R"("bufferSize": 8, "seed": 5)"}) {
    const auto read = [&](uint64_t epoch) {
      std::vector<int64_t> all;
      for (int64_t worker = 0; worker < 3; ++worker) {
        PipelineRun run(
            R"({"source": {"files": {"paths": ["f*"], "pipeline": [{"shuffle": {)" + shuffle +
                R"(}}]}}, "features": [{"name": "x", "dtype": "int64"}], "pipeline": [{"batch": {"size": 3}}]})",
            {3, worker, 1}, folder.path());
        for (const int64_t value : run.Values<int64_t>(0, epoch)) all.push_back(value);
      }
      return all;
    };
    auto first = read(0);
    EXPECT_NE(first, read(1)) << "each epoch has an order of its own";
    EXPECT_EQ(first, read(0));
    EXPECT_FALSE(std::is_sorted(first.begin(), first.end()));
    std::sort(first.begin(), first.end());
    EXPECT_THAT(first, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  }
}

}  // namespace
}  // namespace headrace::side
