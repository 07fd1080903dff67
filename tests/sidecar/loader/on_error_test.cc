// spec.onError: bad records are left out of their batches, counted and listed, up to a bound.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sidecar/files.h"
#include "tests/sidecar/pipelines.h"

namespace headrace::side {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class OnErrorTest : public testing::Test {
 protected:
  static std::string Good(int64_t i) {
    return TFRecordOf(ExampleOf({{"x", Int64List({i})}, {"s", BytesList(std::string(static_cast<size_t>(i), 's'))}}));
  }
  static std::string WrongChecksum(int64_t i) {
    std::string record = Good(i);
    record.back() ^= 1;
    return record;
  }
  static std::string WithoutFeature() { return TFRecordOf(ExampleOf({{"other", Int64List({1})}})); }

  PipelineRun Run(const std::string& on_error, const std::string& before = "",
                  const std::string& features = R"({"name": "x", "dtype": "int64"})") {
    return PipelineRun(R"({"source": {"files": {"paths": ["f*"]}}, "features": [)" + features + R"(], "pipeline": [)" +
                           before + R"({"batch": {"size": 4}}], "onError": )" + on_error + "}",
                       {}, folder_.path());
  }
  Folder folder_;
};

TEST_F(OnErrorTest, SkippedRecordsAreLeftOutOfTheirBatches) {
  folder_.Write("f1", Good(0) + WrongChecksum(1) + Good(2) + WithoutFeature() + WithoutFeature() + Good(5) + Good(6) +
                          Good(7) + WrongChecksum(8));
  auto run = Run(R"({"policy": "Skip", "maxSkipped": 4})");
  const auto all = run.Epoch();
  ASSERT_EQ(all.size(), 3u) << run.status().message();
  EXPECT_THAT(all[0].Values<int64_t>(), ElementsAre(0, 2));
  EXPECT_THAT(all[0].dims[0], ElementsAre(2));
  EXPECT_THAT(all[1].Values<int64_t>(), ElementsAre(5, 6, 7));
  EXPECT_THAT(all[2].Values<int64_t>(), IsEmpty());
  EXPECT_EQ(run.pipeline().skipped_records(), 4u);
  EXPECT_EQ(run.Epoch(1).size(), 3u) << "the same records are no new ones: " << run.status().message();
  EXPECT_EQ(run.pipeline().skipped_records(), 8u);
}

TEST_F(OnErrorTest, RowsOfVariableLengthCloseUp) {
  folder_.Write("f1", Good(1) + WrongChecksum(2) + Good(3) + WithoutFeature());
  auto run = Run(R"({"policy": "Skip"})", "", R"({"name": "s", "dtype": "string"}, {"name": "x", "dtype": "int64"})");
  const auto all = run.Epoch();
  ASSERT_EQ(all.size(), 1u) << run.status().message();
  EXPECT_THAT(all[0].splits[0], ElementsAre(0, 1, 4));
  EXPECT_EQ(all[0].bytes[0].size(), 4u);
  EXPECT_THAT(all[0].Values<int64_t>(1), ElementsAre(1, 3));
}

TEST_F(OnErrorTest, OverItsBoundTheInputFails) {
  folder_.Write("f1", Good(0) + WrongChecksum(1) + Good(2) + WithoutFeature() + Good(4));
  auto run = Run(R"({"policy": "Skip", "maxSkipped": 1})");
  EXPECT_THAT(run.Epoch(), IsEmpty());
  EXPECT_EQ(run.status().code(), Code::kCorrupt);
  EXPECT_THAT(run.status().message(), HasSubstr("spec.onError.maxSkipped: 2 records had to be left out"));
  EXPECT_THAT(run.status().message(), HasSubstr("feature \"x\" is missing"));
}

TEST_F(OnErrorTest, WhatFollowsABrokenLengthIsLeftOutToTheEndOfItsFile) {
  std::string broken = Good(1);
  broken[0] ^= 1;
  folder_.Write("f1", Good(0) + broken + Good(2));
  folder_.Write("f2", Good(3) + Good(4).substr(0, 20));
  folder_.Write("f3", Good(5));
  auto run = Run(R"({"policy": "Skip", "maxSkipped": 2})");
  EXPECT_THAT(run.Values<int64_t>(), ElementsAre(0, 3, 5)) << run.status().message();
  EXPECT_EQ(run.pipeline().skipped_records(), 2u);
}

TEST_F(OnErrorTest, BadRecordsDoNotPassAFilter) {
  folder_.Write("f1", Good(0) + WrongChecksum(1) + Good(2) + WithoutFeature() + Good(4) + Good(5));
  auto run = Run(R"({"policy": "Skip"})", R"({"filter": {"expression": "x != 2"}}, )");
  const auto all = run.Epoch();
  ASSERT_EQ(all.size(), 1u) << run.status().message();
  EXPECT_THAT(all[0].Values<int64_t>(), ElementsAre(0, 4, 5));
}

TEST_F(OnErrorTest, AFileThatIsGoneIsNoBadRecord) {
  folder_.Write("f1", Good(0));
  const std::string gone = folder_.Write("f2", Good(1));
  auto run = Run(R"({"policy": "Skip", "maxSkipped": "50%"})");
  std::filesystem::remove(gone);
  run.Epoch();
  EXPECT_EQ(run.status().code(), Code::kNotFound);
}

TEST_F(OnErrorTest, SpecsThatCannotSkipAreRefused) {
  EXPECT_THAT(PipelineRun(R"({"source": {"range": {}}, "pipeline": [{"batch": {"size": 2}}],
                              "onError": {"policy": "Skip"}})")
                  .status()
                  .message(),
              HasSubstr("spec.onError.policy: Skip goes with spec.source.files only"));
  EXPECT_THAT(Run(R"({"policy": "Skip"})", R"({"batch": {"size": 2}}, )").status().message(),
              HasSubstr("needs one batch in spec.pipeline"));
  EXPECT_THAT(Run(R"({"policy": "Skip", "maxSkipped": "0%"})").status().message(),
              HasSubstr("spec.onError.maxSkipped: \"0%\": must be a whole number of records, or a percentage"));
  EXPECT_THAT(Run(R"({"maxSkipped": 3})").status().message(), HasSubstr("goes with policy Skip"));
}

}  // namespace
}  // namespace headrace::side
