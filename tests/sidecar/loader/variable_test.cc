// Strings and ragged tensors, from records to slots. Expected values: arithmetic over what was written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sidecar/files.h"
#include "tests/sidecar/pipelines.h"

namespace headrace::side {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Variable : public testing::Test {
 protected:
  // Record i holds i tokens 10 * i, ..., the text "r" * i, and i itself.
  void Write(int records) {
    std::string file;
    for (int64_t i = 0; i < records; ++i) {
      std::vector<int64_t> tokens;
      for (int64_t t = 0; t < i; ++t) tokens.push_back(10 * i + t);
      file += TFRecordOf(ExampleOf({{"tokens", Int64List(tokens)},
                                    {"text", BytesList(std::string(static_cast<size_t>(i), 'r'))},
                                    {"y", Int64List({i})}}));
    }
    folder_.Write("a.tfrecord", file);
  }
  PipelineRun Run(const std::string& pipeline, Topology topology = {}, const std::string& delivery = "{}") {
    return PipelineRun(R"({"source": {"files": {"paths": ["a.tfrecord"]}}, "features": [
        {"name": "tokens", "dtype": "int64", "shape": [-1]}, {"name": "text", "dtype": "string"},
        {"name": "y", "dtype": "int64"}], "pipeline": )" +
                           pipeline + R"(, "delivery": )" + delivery + "}",
                       topology, folder_.path());
  }
  static std::string Text(const Delivered& delivered, size_t component) {
    return {delivered.bytes[component].begin(), delivered.bytes[component].end()};
  }

  Folder folder_;
};

TEST_F(Variable, ComesAsValuesAndRowSplits) {
  Write(5);
  auto run = Run(R"([{"batch": {"size": 3}}])");
  const auto all = run.Epoch();
  ASSERT_TRUE(run.status().ok()) << run.status().message();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_THAT(all[0].dims[0], ElementsAre(3, -1));
  EXPECT_THAT(all[0].Values<int64_t>(0), ElementsAre(10, 20, 21));
  EXPECT_THAT(all[0].splits[0], ElementsAre(0, 0, 1, 3));
  EXPECT_THAT(all[0].dims[1], ElementsAre(3));
  EXPECT_EQ(Text(all[0], 1), "rrr");
  EXPECT_THAT(all[0].splits[1], ElementsAre(0, 0, 1, 3));
  EXPECT_THAT(all[0].Values<int64_t>(2), ElementsAre(0, 1, 2));
  EXPECT_THAT(all[1].Values<int64_t>(0), ElementsAre(30, 31, 32, 40, 41, 42, 43));
  EXPECT_THAT(all[1].splits[0], ElementsAre(0, 3, 7));
}

TEST_F(Variable, AReplicaWithoutRecordsGetsNoRows) {
  Write(2);
  auto run = Run(R"([{"batch": {"size": 2}}])", {1, 0, 3});
  const auto all = run.Epoch();
  ASSERT_TRUE(run.status().ok()) << run.status().message();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_THAT(all[1].splits[0], ElementsAre(0, 1));
  EXPECT_THAT(all[2].dims[0], ElementsAre(0, -1));
  EXPECT_THAT(all[2].splits[0], ElementsAre(0));
  EXPECT_THAT(all[2].splits[1], ElementsAre(0));
  EXPECT_THAT(all[2].bytes[0], IsEmpty());
}

TEST_F(Variable, OneRecordByItselfIsATensorOfItsLength) {
  Write(3);
  auto run = Run("[]");
  const auto all = run.Epoch();
  ASSERT_EQ(all.size(), 3u) << run.status().message();
  EXPECT_THAT(all[2].dims[0], ElementsAre(2));
  EXPECT_THAT(all[2].splits[0], IsEmpty());
  EXPECT_THAT(all[2].Values<int64_t>(0), ElementsAre(20, 21));
  EXPECT_THAT(all[2].dims[1], IsEmpty());
  EXPECT_THAT(all[2].splits[1], ElementsAre(0, 2)) << "a string by itself is one row";
}

TEST_F(Variable, MapsOnValuesTakeRowsOfAnyLength) {
  Write(3);
  auto run = Run(R"([{"map": {"feature": "tokens", "cast": "float32"}},
                     {"map": {"feature": "tokens", "scale": 0.5, "offset": 1}}, {"batch": {"size": 3}}])");
  const auto all = run.Epoch();
  ASSERT_EQ(all.size(), 1u) << run.status().message();
  EXPECT_THAT(all[0].Values<float>(0), ElementsAre(6.0f, 11.0f, 11.5f));
  EXPECT_THAT(all[0].splits[0], ElementsAre(0, 0, 1, 3));
}

TEST_F(Variable, ABatchThatOutgrowsItsBoundSaysWhichNumberToRaise) {
  Write(5);
  auto run = Run(R"([{"batch": {"size": 5}}])", {}, R"({"maxBatchBytes": 89})");  // 10 tokens and 10 letters are 90
  EXPECT_THAT(run.Epoch(), IsEmpty());
  EXPECT_THAT(run.status().message(), HasSubstr("spec.delivery.maxBatchBytes: the strings and ragged values of a batch "
                                                "take 90 bytes and have room for 89"));
  auto enough = Run(R"([{"batch": {"size": 5}}])", {}, R"({"maxBatchBytes": 90})");
  EXPECT_EQ(enough.Epoch().size(), 1u) << enough.status().message();
}

TEST_F(Variable, RecordsWithoutFeaturesAreStrings) {
  folder_.Write("a.tfrecord", TFRecordOf("one") + TFRecordOf("") + TFRecordOf("three"));
  PipelineRun run(R"({"source": {"files": {"paths": ["a.tfrecord"]}}, "pipeline": [{"batch": {"size": 3}}]})", {},
                  folder_.path());
  const auto all = run.Epoch();
  ASSERT_EQ(all.size(), 1u) << run.status().message();
  EXPECT_EQ(Text(all[0], 0), "onethree");
  EXPECT_THAT(all[0].splits[0], ElementsAre(0, 3, 3, 8));
}

}  // namespace
}  // namespace headrace::side
