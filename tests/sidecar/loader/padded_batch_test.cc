// Features of varying length, padded to the shape that paddedBatch gives them: tf.data's padded_batch.
#include <gmock/gmock.h>

#include "tests/sidecar/files.h"
#include "tests/sidecar/pipelines.h"

namespace headrace::side {
namespace {

using ::testing::HasSubstr;

class PaddedBatch : public testing::Test {
 protected:
  // One record for each list of tokens; none for a record without the feature.
  PipelineRun Run(const std::vector<std::vector<int64_t>>& records, const std::string& pipeline,
                  const std::string& shape = "[-1]", Topology topology = {}) {
    std::string bytes;
    int64_t label = 0;
    for (const std::vector<int64_t>& tokens : records) {
      std::vector<std::pair<std::string, std::string>> features = {{"label", Int64List({label++})}};
      if (!tokens.empty()) features.emplace_back("tokens", Int64List(tokens));
      bytes += TFRecordOf(ExampleOf(features));
    }
    folder_.Write("a.tfrecord", bytes);
    return PipelineRun(R"({"source": {"files": {"paths": ["a.tfrecord"]}}, "features": [
        {"name": "tokens", "dtype": "int64", "shape": )" +
                           shape + R"(}, {"name": "label", "dtype": "int64"}],
        "distribution": {"autoShardPolicy": "Data"}, "pipeline": )" +
                           pipeline + "}",
                       topology, folder_.path());
  }

  Folder folder_;
};

TEST_F(PaddedBatch, FillsUpWithTheValue) {
  PipelineRun run =
      Run({{1, 2, 3}, {}, {4}},
          R"([{"paddedBatch": {"size": 2, "paddedShapes": {"tokens": [4]}, "paddingValues": {"tokens": -1}}}])");
  ASSERT_TRUE(run.status().ok()) << run.status().ToString();
  EXPECT_EQ(ToString(run.pipeline().element_spec()),
            "(TensorSpec(shape=(None, 4), dtype=tf.int64, name=None), TensorSpec(shape=(None,), dtype=tf.int64, "
            "name=None))");
  const std::vector<Delivered> got = run.Epoch();
  ASSERT_EQ(got.size(), 2u) << run.status().ToString();
  EXPECT_EQ(got[0].Values<int64_t>(0), (std::vector<int64_t>{1, 2, 3, -1, -1, -1, -1, -1}));
  EXPECT_EQ(got[1].Values<int64_t>(0), (std::vector<int64_t>{4, -1, -1, -1}));
  EXPECT_EQ(got[0].Values<int64_t>(1), (std::vector<int64_t>{0, 1}));
}

TEST_F(PaddedBatch, IsCutAsABatchIs) {
  PipelineRun run =
      Run({{1}, {2, 2}, {3}}, R"([{"paddedBatch": {"size": 3, "paddedShapes": {"tokens": [2]}}}])", "[-1]", {1, 0, 2});
  const std::vector<Delivered> got = run.Epoch();
  ASSERT_EQ(got.size(), 2u) << run.status().ToString();
  EXPECT_EQ(got[0].Values<int64_t>(0), (std::vector<int64_t>{1, 0, 2, 2}));
  EXPECT_EQ(got[1].Values<int64_t>(0), (std::vector<int64_t>{3, 0}));
}

TEST_F(PaddedBatch, MapsAndFiltersStandBesideIt) {
  PipelineRun run = Run({{1}, {2, 2}, {3}},
                        R"([{"filter": {"expression": "label != 1"}},
                            {"paddedBatch": {"size": 3, "paddedShapes": {"tokens": [2]}}},
                            {"map": {"feature": "tokens", "cast": "float32"}}])");
  EXPECT_EQ(run.Values<float>(0), (std::vector<float>{1, 0, 3, 0})) << run.status().ToString();
}

TEST_F(PaddedBatch, LaterDimensionsAreFixed) {
  PipelineRun run =
      Run({{1, 2}, {1, 2, 3, 4}}, R"([{"paddedBatch": {"size": 2, "paddedShapes": {"tokens": [2, 2]}}}])", "[-1, 2]");
  EXPECT_EQ(run.Values<int64_t>(0), (std::vector<int64_t>{1, 2, 0, 0, 1, 2, 3, 4})) << run.status().ToString();
  PipelineRun uneven =
      Run({{1, 2, 3}}, R"([{"paddedBatch": {"size": 1, "paddedShapes": {"tokens": [2, 2]}}}])", "[-1, 2]");
  EXPECT_TRUE(uneven.Epoch().empty());
  EXPECT_THAT(uneven.status().message(), HasSubstr("feature \"tokens\" holds 3 integers, which is no multiple of 2"));
}

TEST_F(PaddedBatch, ALongerRecordNamesFileAndOffset) {
  PipelineRun run = Run({{1}, {1, 2, 3}}, R"([{"paddedBatch": {"size": 2, "paddedShapes": {"tokens": [2]}}}])");
  EXPECT_TRUE(run.Epoch().empty());
  EXPECT_THAT(run.status().message(), HasSubstr("a.tfrecord: record at byte "));
  EXPECT_THAT(run.status().message(), HasSubstr("feature \"tokens\" holds 3 integers and paddedBatch pads to 2"));
}

TEST_F(PaddedBatch, WhatCannotBeSaidIsRefused) {
  const auto refused = [&](const std::string& pipeline) { return Run({{1}}, pipeline).status().message(); };
  EXPECT_THAT(refused(R"([{"paddedBatch": {"size": 2, "paddedShapes": {}}}])"),
              HasSubstr("spec.features[0].shape: varies in length, and the paddedBatch does not pad it: add tokens: "
                        "[LENGTH] to its paddedShapes"));
  EXPECT_THAT(refused(R"([{"paddedBatch": {"size": 2, "paddedShapes": {"tokns": [2]}}}])"),
              HasSubstr("spec.pipeline[0].paddedBatch.paddedShapes.tokns: is no feature of varying length: those are "
                        "\"tokens\""));
  EXPECT_THAT(refused(R"([{"paddedBatch": {"size": 2, "paddedShapes": {"tokens": [2, 3]}}}])"),
              HasSubstr("differs from the feature's shape in more than its first dimension"));
  EXPECT_THAT(
      refused(R"([{"map": {"feature": "tokens", "cast": "float32"}},
                          {"paddedBatch": {"size": 2, "paddedShapes": {"tokens": [2]}}}])"),
      HasSubstr("spec.pipeline[0].map: feature \"tokens\" varies in length here: map it after the paddedBatch"));
  EXPECT_THAT(refused(R"([{"filter": {"expression": "tokens[0] > 1"}},
                          {"paddedBatch": {"size": 2, "paddedShapes": {"tokens": [2]}}}])"),
              HasSubstr("spec.pipeline[0].filter: \"tokens\" varies in length here"));
  EXPECT_THAT(refused(R"([{"batch": {"size": 2}}, {"paddedBatch": {"size": 2, "paddedShapes": {"tokens": [2]}}}])"),
              HasSubstr("must be the first batch"));
}

}  // namespace
}  // namespace headrace::side
