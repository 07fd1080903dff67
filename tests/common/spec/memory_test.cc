#include "common/spec/memory.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace headrace {
namespace {

constexpr int64_t kMi = int64_t{1} << 20;

Plan Compiled(const char* spec) { return CompilePlan(*ParseInputSpec(nlohmann::json::parse(spec)), "ml/a"); }

TEST(LargestPiece, IsTheLastBatchCutForTheReplicas) {
  const Plan batch = Compiled(R"({"source": {"range": {"stop": 10}}, "pipeline": [{"batch": {"size": 10}}]})");
  EXPECT_EQ(LargestPiece(batch, {1, 0, 1}), 10);
  EXPECT_EQ(LargestPiece(batch, {2, 0, 2}), 3);
  const Plan buckets = Compiled(R"({"source": {"files": {"paths": ["a"]}}, "pipeline": [{"bucketBatch":
      {"boundaries": [4, 8], "sizes": [8, 32, 2]}}]})");
  EXPECT_EQ(LargestPiece(buckets, {1, 0, 2}), 16);
  EXPECT_EQ(LargestPiece(Compiled(R"({"source": {"range": {"stop": 10}}})"), {}), 0);
}

TEST(DefaultPrefetchSteps, AreWhatSixteenMebibytesHold) {
  EXPECT_EQ(DefaultPrefetchSteps(0), 16);
  EXPECT_EQ(DefaultPrefetchSteps(kMi), 16);
  EXPECT_EQ(DefaultPrefetchSteps(kMi + 1), 15);  // whole pages
  EXPECT_EQ(DefaultPrefetchSteps(2 * kMi), 8);
  EXPECT_EQ(DefaultPrefetchSteps(4 * kMi), 4);
  EXPECT_EQ(DefaultPrefetchSteps(int64_t{1} << 40), 4);
}

TEST(EstimateMemory, DoesNotGrowWithTheRun) {
  const Plan plan = Compiled(R"({"source": {"range": {"stop": 10}}, "pipeline": [{"batch": {"size": 1048576}}]})");
  const auto small = EstimateMemory(plan, {2, 0, 8}, kMi / 8, {});
  const auto large = EstimateMemory(plan, {128, 0, 8}, kMi / 8, {});  // the same batch of a replica
  ASSERT_TRUE(small.has_value() && large.has_value());
  EXPECT_EQ(small->prefetch_steps, 16);
  EXPECT_EQ(large->prefetch_steps, 16);
  EXPECT_EQ(large->ring_bytes, small->ring_bytes);
}

TEST(EstimateMemory, OfNumbers) {
  const Plan plan = Compiled(R"({"source": {"range": {"stop": 10}}, "pipeline": [{"batch": {"size": 1000}}],
                                 "delivery": {"prefetchSteps": 6}})");
  const auto memory = EstimateMemory(plan, {1, 0, 2}, 500, {});
  ASSERT_TRUE(memory.has_value());
  EXPECT_EQ(memory->slot_bytes, 4096);  // 500 x 8 bytes, and a page
  EXPECT_EQ(memory->ring_bytes, 4096 * (6 + 2) * 2);
  EXPECT_EQ(memory->certain_ring_bytes, memory->ring_bytes);
  EXPECT_EQ(memory->shuffle_bytes, 0);
  EXPECT_EQ(memory->loader_bytes, 24 * kMi + 4 * kMi);
}

TEST(EstimateMemory, StringsHaveRoomThatTheyMayNotNeed) {
  const Plan plan = Compiled(R"({"source": {"files": {"paths": ["a"]}}, "features": [{"name": "s", "dtype": "string"}],
                                 "pipeline": [{"batch": {"size": 8}}], "delivery": {"maxBatchBytes": 1048576}})");
  const auto memory = EstimateMemory(plan, {1, 0, 1}, 8, {});
  ASSERT_TRUE(memory.has_value());
  EXPECT_GE(memory->slot_bytes, kMi);
  EXPECT_EQ(memory->certain_ring_bytes, 4096 * (15 + 2));  // row splits
}

TEST(EstimateMemory, ShufflesTakeWhatTheirRecordsDo) {
  const Plan plan = Compiled(R"({"source": {"files": {"paths": ["a"]}}, "features": [{"name": "x", "dtype": "float32",
      "shape": [1000]}], "pipeline": [{"shuffle": {"bufferSize": 100000}}, {"batch": {"size": 8}}]})");
  // 2.5 times the records, and a reference to each.
  EXPECT_EQ(EstimateMemory(plan, {}, 8, {})->shuffle_bytes, 100000 * (4000 * 5 / 2 + 24));
  EXPECT_EQ(EstimateMemory(plan, {}, 8, {.record_bytes = 2000})->shuffle_bytes, 100000 * (2000 * 5 / 2 + 24));
  EXPECT_EQ(EstimateMemory(plan, {}, 8, {.remote = true})->read_ahead_bytes,
            EstimateMemory(plan, {}, 8, {})->read_ahead_bytes + 128 * kMi);
}

TEST(EstimateMemory, EachOpenParquetFileHasARowGroup) {
  const auto read_ahead = [](const char* pipeline) {
    const std::string spec =
        R"({"source": {"files": {"format": "Parquet", "paths": ["a"]}}, "features": [{"name": "x", "dtype": "float32"}],
            "pipeline": )" +
        std::string(pipeline) + "}";
    return EstimateMemory(Compiled(spec.c_str()), {}, 8, {})->read_ahead_bytes;
  };
  const int64_t one = read_ahead(R"([{"batch": {"size": 8}}])");
  EXPECT_EQ(one, 4 * kMi + 24 * kMi);
  EXPECT_EQ(read_ahead(R"([{"interleave": {"cycleLength": 3}}, {"batch": {"size": 8}}])"), one + 2 * 24 * kMi);
}

TEST(EstimateMemory, NothingWhereABatchIsNotKnownBeforeTheData) {
  EXPECT_FALSE(EstimateMemory(Compiled(R"({"source": {"function": {"command": ["a"]}}})"), {}, 1, {}));
}

}  // namespace
}  // namespace headrace
