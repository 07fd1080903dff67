// Sequence packing. What is expected is arithmetic over what was written, or written out by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sidecar/files.h"
#include "tests/sidecar/pipelines.h"

namespace headrace::side {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kTokens[] = R"({"name": "tokens", "dtype": "int64", "shape": [-1]})";
constexpr char kBoth[] = R"({"name": "tokens", "dtype": "int64", "shape": [-1]}, {"name": "loss", "shape": [-1]})";

class PackTest : public testing::Test {
 protected:
  // Record i holds tokens[i] tokens 100 * i, 100 * i + 1, ..., loss[i] halves i + 0.5, and i. -1: no record at all.
  void Write(const std::vector<int64_t>& tokens, const std::vector<int64_t>& loss = {}) {
    std::string file;
    for (size_t i = 0; i < tokens.size(); ++i) {
      offsets_.push_back(file.size());
      if (tokens[i] < 0) {
        file += TFRecordOf("nothing");
        continue;
      }
      std::vector<int64_t> values;
      for (int64_t t = 0; t < tokens[i]; ++t) values.push_back(100 * static_cast<int64_t>(i) + t);
      file += TFRecordOf(ExampleOf(
          {{"tokens", Int64List(values)},
           {"loss", FloatList(std::vector<float>(loss.empty() ? 0 : loss[i], static_cast<float>(i) + 0.5f))},
           {"i", Int64List({static_cast<int64_t>(i)})}}));
    }
    folder_.Write("a.tfrecord", file);
  }
  PipelineRun Run(const std::string& pipeline, const std::string& features = kTokens, const std::string& rest = "",
                  Topology topology = {}) {
    return PipelineRun(R"({"source": {"files": {"paths": ["a.tfrecord"]}}, "features": [)" + features +
                           R"(], "pipeline": )" + pipeline + rest + "}",
                       topology, folder_.path());
  }
  std::string PlaceOf(size_t record) const {
    return "a.tfrecord: record at byte " + std::to_string(offsets_[record]) + ": ";
  }

  Folder folder_;
  std::vector<size_t> offsets_;
};

TEST_F(PackTest, FillsRowsInOrderAndBeginsOneWhereARecordDoesNotFit) {
  Write({3, 2, 4, 5, 1, 0, 5, 1});
  auto run = Run(R"([{"pack": {"length": 6}}, {"batch": {"size": 2}}])");
  ASSERT_TRUE(run.status().ok()) << run.status().message();
  EXPECT_EQ(ToString(run.pipeline().element_spec()),
            "(TensorSpec(shape=(None, 6), dtype=tf.int64, name=None), TensorSpec(shape=(None, 6), dtype=tf.int32, "
            "name=None), TensorSpec(shape=(None, 6), dtype=tf.int32, name=None))");
  EXPECT_EQ(run.pipeline().element_spec()[1].name, "tokens_segment_ids");
  EXPECT_EQ(run.pipeline().element_spec()[2].name, "tokens_positions");
  EXPECT_EQ(run.pipeline().cardinality(), kUnknownCardinality);
  const auto all = run.Epoch();
  ASSERT_EQ(all.size(), 2u) << run.status().message();
  EXPECT_THAT(all[0].Values<int64_t>(0), ElementsAre(0, 1, 2, 100, 101, 0,  //
                                                     200, 201, 202, 203, 0, 0));
  EXPECT_THAT(all[0].Values<int32_t>(1), ElementsAre(1, 1, 1, 2, 2, 0,  //
                                                     1, 1, 1, 1, 0, 0));
  EXPECT_THAT(all[0].Values<int32_t>(2), ElementsAre(0, 1, 2, 0, 1, 0,  //
                                                     0, 1, 2, 3, 0, 0));
  EXPECT_THAT(all[1].Values<int64_t>(0), ElementsAre(300, 301, 302, 303, 304, 400,  //
                                                     600, 601, 602, 603, 604, 700))
      << "rows may be full to the last value, and a record without values is in none";
  EXPECT_THAT(all[1].Values<int32_t>(1), ElementsAre(1, 1, 1, 1, 1, 2,  //
                                                     1, 1, 1, 1, 1, 2));
  EXPECT_THAT(all[1].Values<int32_t>(2), ElementsAre(0, 1, 2, 3, 4, 0,  //
                                                     0, 1, 2, 3, 4, 0));
}

TEST_F(PackTest, ARecordFitsIfEachOfItsSequencesDoes) {
  Write({2, 1, 1, 1}, {1, 3, 0, 2});
  auto run = Run(R"([{"pack": {"length": 4}}, {"batch": {"size": 2}}])", kBoth);
  const auto all = run.Epoch();
  ASSERT_EQ(all.size(), 1u) << run.status().message();
  ASSERT_EQ(all[0].bytes.size(), 6u);
  // Records 0, 1 and 2 take 4 and 4; record 3 would fit into neither.
  EXPECT_THAT(all[0].Values<int64_t>(0), ElementsAre(0, 1, 100, 200, 300, 0, 0, 0));
  EXPECT_THAT(all[0].Values<int32_t>(1), ElementsAre(1, 1, 2, 3, 1, 0, 0, 0));
  EXPECT_THAT(all[0].Values<int32_t>(2), ElementsAre(0, 1, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(all[0].Values<float>(3), ElementsAre(.5f, 1.5f, 1.5f, 1.5f, 3.5f, 3.5f, 0, 0));
  EXPECT_THAT(all[0].Values<int32_t>(4), ElementsAre(1, 2, 2, 2, 1, 1, 0, 0)) << "a record has one id in all of them";
  EXPECT_THAT(all[0].Values<int32_t>(5), ElementsAre(0, 0, 1, 2, 0, 1, 0, 0));
}

TEST_F(PackTest, SplitCutsTheStreamOfValues) {
  // 1 + 9 + 2 + 8 = 20 values, 4 a row: record 1 goes over three rows and record 3 over two.
  Write({1, 9, 0, 2, 8});
  auto run = Run(R"([{"pack": {"length": 4, "split": true}}, {"batch": {"size": 8}}])");
  const auto all = run.Epoch();
  ASSERT_EQ(all.size(), 1u) << run.status().message();
  EXPECT_THAT(all[0].Values<int64_t>(0), ElementsAre(0, 100, 101, 102,    //
                                                     103, 104, 105, 106,  //
                                                     107, 108, 300, 301,  //
                                                     400, 401, 402, 403,  //
                                                     404, 405, 406, 407));
  EXPECT_THAT(all[0].Values<int32_t>(1), ElementsAre(1, 2, 2, 2,  //
                                                     1, 1, 1, 1,  //
                                                     1, 1, 2, 2,  //
                                                     1, 1, 1, 1,  //
                                                     1, 1, 1, 1));
  EXPECT_THAT(all[0].Values<int32_t>(2), ElementsAre(0, 0, 1, 2,  //
                                                     3, 4, 5, 6,  //
                                                     7, 8, 0, 1,  //
                                                     0, 1, 2, 3,  //
                                                     4, 5, 6, 7));
}

// Enough for many blocks of records, of bytes and of rows: every value and id by arithmetic.
TEST_F(PackTest, LongStreamsComeWhole) {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < 3000; ++i) lengths.push_back(i * 7919 % 61);
  Write(lengths);
  for (const bool split : {false, true}) {
    constexpr int64_t kLength = 60;
    std::vector<int64_t> values;
    std::vector<int32_t> ids;
    std::vector<int32_t> positions;
    int32_t id = 0;
    const auto fill = [&] {
      values.resize((values.size() + kLength - 1) / kLength * kLength);
      ids.resize(values.size());
      positions.resize(values.size());
      id = 0;
    };
    for (size_t i = 0; i < lengths.size(); ++i) {
      if (lengths[i] == 0) continue;
      if (!split && static_cast<int64_t>(values.size()) % kLength + lengths[i] > kLength) fill();
      if (values.size() % kLength == 0) id = 0;
      ++id;
      for (int64_t t = 0; t < lengths[i]; ++t) {
        if (t > 0 && values.size() % kLength == 0) id = 1;
        values.push_back(100 * static_cast<int64_t>(i) + t);
        ids.push_back(id);
        positions.push_back(static_cast<int32_t>(t));
      }
    }
    fill();
    const std::string pack = R"({"pack": {"length": 60, "split": )" + std::string(split ? "true" : "false") + "}}";
    auto run = Run("[" + pack + R"(, {"batch": {"size": 100}}])");
    EXPECT_EQ(run.Values<int64_t>(0), values) << run.status().message();
    EXPECT_EQ(run.Values<int32_t>(1), ids);
    EXPECT_EQ(run.Values<int32_t>(2), positions);
  }
}

TEST_F(PackTest, StandsAmongOtherTransformations) {
  Write({3, 2, 4, 5});
  // Records 0 and 1, twice. Maps before the pack act on records, those after it on rows.
  auto run = Run(R"([{"take": {"count": 2}}, {"repeat": {"count": 2}}, {"map": {"feature": "tokens", "cast": "float32"}},
                     {"pack": {"length": 5}}, {"enumerate": {}}, {"cache": {}},
                     {"map": {"feature": "tokens", "scale": 0.5}}, {"filter": {"expression": "tokens_segment_ids[4] == 2"}},
                     {"batch": {"size": 2}}])");
  const auto all = run.Epoch();
  ASSERT_EQ(all.size(), 1u) << run.status().message();
  EXPECT_THAT(all[0].Values<int64_t>(0), ElementsAre(0, 1));
  EXPECT_THAT(all[0].Values<float>(1), ElementsAre(0, .5f, 1, 50, 50.5f, 0, .5f, 1, 50, 50.5f));
  EXPECT_EQ(run.Epoch(1).size(), 1u) << "from the cache: " << run.status().message();
}

TEST_F(PackTest, RowsAreSharedAmongWorkersAndShuffled) {
  Write(std::vector<int64_t>(40, 3));
  std::vector<int64_t> firsts;
  for (int64_t worker = 0; worker < 2; ++worker) {
    auto run = Run(R"([{"pack": {"length": 7}}, {"shuffle": {"bufferSize": 5, "seed": 1}}, {"batch": {"size": 4}}])",
                   kTokens, R"(, "distribution": {"autoShardPolicy": "Data"})", {2, worker, 1});
    const std::vector<int64_t> values = run.Values<int64_t>(0);
    ASSERT_EQ(values.size(), 70u) << run.status().message();
    for (size_t row = 0; row < 10; ++row) firsts.push_back(values[7 * row]);
  }
  std::sort(firsts.begin(), firsts.end());
  for (size_t row = 0; row < 20; ++row) EXPECT_EQ(firsts[row], static_cast<int64_t>(200 * row));
}

TEST_F(PackTest, PacksRecordsThatAreReadByNumber) {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < 50; ++i) lengths.push_back(1 + i % 5);
  Write(lengths);
  for (const char* split : {"false", "true"}) {
    auto run = Run(R"([{"shuffle": {"scope": "Global", "seed": 7}}, {"pack": {"length": 8, "split": )" +
                   std::string(split) + R"(}}, {"batch": {"size": 100}}])");
    const auto all = run.Epoch();
    ASSERT_EQ(all.size(), 1u) << run.status().message();
    const std::vector<int64_t> values = all[0].Values<int64_t>(0);
    const std::vector<int32_t> ids = all[0].Values<int32_t>(1);
    std::vector<int64_t> packed;
    for (size_t v = 0; v < values.size(); ++v) {
      if (ids[v] == 0) continue;
      EXPECT_EQ(values[v] % 100, all[0].Values<int32_t>(2)[v]) << "its place in its record";
      packed.push_back(values[v]);
    }
    EXPECT_FALSE(std::is_sorted(packed.begin(), packed.end()));
    std::sort(packed.begin(), packed.end());
    std::vector<int64_t> written;
    for (int64_t i = 0; i < 50; ++i) {
      for (int64_t t = 0; t < 1 + i % 5; ++t) written.push_back(100 * i + t);
    }
    EXPECT_EQ(packed, written);
  }
}

TEST_F(PackTest, ARecordThatIsTooLongEndsTheEpochOrIsLeftOut) {
  Write({3, 4, 2, -1, 3, 1});
  const std::string pipeline = R"([{"pack": {"length": 3}}, {"batch": {"size": 1}}])";
  auto fails = Run(pipeline);
  fails.Epoch();
  EXPECT_EQ(fails.status().message(),
            folder_.path() + "/" + PlaceOf(1) +
                "component \"tokens\" holds 4 values, and rows have room for 3; raise spec.pipeline[0].pack.length, "
                "or set split: true there");
  auto skips = Run(pipeline, kTokens, R"(, "onError": {"policy": "Skip"})");
  EXPECT_THAT(skips.Values<int64_t>(0), ElementsAre(0, 1, 2, 200, 201, 0, 400, 401, 402, 500, 0, 0))
      << skips.status().message();
}

TEST_F(PackTest, WhatStandsBeforeABadRecordIsDelivered) {
  Write({3, 3, 2, -1});
  auto run = Run(R"([{"pack": {"length": 3}}, {"batch": {"size": 1}}])");
  EXPECT_EQ(run.Epoch().size(), 2u);
  EXPECT_THAT(run.status().message(), HasSubstr(PlaceOf(3)));
}

TEST_F(PackTest, SequencesOfOneRecordAreSplitAtOnePlace) {
  Write({2, 3}, {2, 3});
  auto run = Run(R"([{"pack": {"length": 4, "split": true}}, {"batch": {"size": 2}}])", kBoth);
  EXPECT_THAT(run.Values<float>(3), ElementsAre(.5f, .5f, 1.5f, 1.5f, 1.5f, 0, 0, 0)) << run.status().message();
  Write({2, 3}, {2, 4});
  auto uneven = Run(R"([{"pack": {"length": 4, "split": true}}, {"batch": {"size": 2}}])", kBoth);
  EXPECT_TRUE(uneven.Epoch().empty());
  EXPECT_THAT(uneven.status().message(),
              HasSubstr("component \"loss\" holds 4 values, and \"tokens\" 3, so that spec.pipeline[0].pack cannot "
                        "split them at one place; pack one of them, or set split: false"));
}

TEST_F(PackTest, WhatCannotBePackedIsRefused) {
  Write({1});
  const auto refused = [&](const std::string& features, const std::string& pipeline) {
    return Run(pipeline, features).status().message();
  };
  const std::string label = std::string(kTokens) + R"(, {"name": "i", "dtype": "int64"})";
  EXPECT_THAT(refused(label, R"([{"pack": {"length": 4}}])"),
              HasSubstr("spec.pipeline[0].pack: a row holds several records, and of \"i\" it could hold one: leave it "
                        "out of spec.features"));
  EXPECT_THAT(refused(kBoth, R"([{"pack": {"length": 4, "features": ["tokens"]}}])"), HasSubstr("and of \"loss\" it"));
  EXPECT_THAT(refused(kTokens, R"([{"enumerate": {}}, {"pack": {"length": 4}}])"), HasSubstr("and of \"index\" it"));
  EXPECT_THAT(refused(label, R"([{"pack": {"length": 4, "features": ["i"]}}])"),
              HasSubstr("component \"i\" is no sequence of numbers; give the feature the shape [-1]"));
  EXPECT_THAT(refused(kTokens, R"([{"pack": {"length": 4, "features": ["tokn"]}}])"),
              HasSubstr("did you mean \"tokens\"?"));
  EXPECT_THAT(refused(kTokens, R"([{"pack": {"length": 4, "features": ["tokens", "tokens"]}}])"),
              HasSubstr("spec.pipeline[0].pack.features: \"tokens\" stands twice"));
  EXPECT_THAT(refused(R"({"name": "i", "dtype": "int64"})", R"([{"pack": {"length": 4}}])"),
              HasSubstr("there is no sequence of numbers here; give a feature the shape [-1]"));
  EXPECT_THAT(refused(R"({"name": "v", "shape": [-1, 3]})", R"([{"pack": {"length": 4}}])"),
              HasSubstr("there is no sequence of numbers here"));
  EXPECT_THAT(refused(kTokens, R"([{"pack": {"length": 4}}, {"paddedBatch": {"size": 2, "paddedShapes": {"tokens": [4]}}}])"),
              HasSubstr("let a batch stand after the pack, not a paddedBatch"));
  EXPECT_THAT(refused(kTokens, R"([{"batch": {"size": 4}}, {"pack": {"length": 4}}])"),
              HasSubstr("spec.pipeline[1].pack: must come before batch"));
  EXPECT_THAT(refused(kTokens, R"([{"pack": {"length": 200000000}}])"),
              HasSubstr("component \"tokens\" would take more than 1 GiB a record"));
  EXPECT_THAT(refused(std::string(kTokens) + R"(, {"name": "tokens_positions", "shape": [-1]})",
                      R"([{"pack": {"length": 4}}])"),
              HasSubstr("makes two components of the name \"tokens_positions\"; rename a feature"));
}

}  // namespace
}  // namespace headrace::side
