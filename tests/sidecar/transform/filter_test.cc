#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/sidecar/files.h"
#include "tests/sidecar/pipelines.h"

namespace headrace::side {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string Filtered(int64_t start, int64_t stop, const std::string& expression) {
  return R"({"source": {"range": {"start": )" + std::to_string(start) + R"(, "stop": )" + std::to_string(stop) +
         R"(}}, "pipeline": [{"filter": {"expression": ")" + expression + R"("}}, {"batch": {"size": 7}}]})";
}

std::vector<int64_t> Where(const std::string& expression, int64_t start = -5, int64_t stop = 6) {
  PipelineRun run(Filtered(start, stop, expression));
  auto values = run.Values<int64_t>();
  EXPECT_TRUE(run.status().ok()) << run.status().message();
  return values;
}

TEST(Filter, FollowsTheOperatorsOfC) {
  EXPECT_THAT(Where("value < -3 || value >= 5"), ElementsAre(-5, -4, 5));
  EXPECT_THAT(Where("value > -3 && value <= -1"), ElementsAre(-2, -1));
  EXPECT_THAT(Where("value == 1 || value > 1 && value < 3"), ElementsAre(1, 2)) << "&& binds more tightly";
  EXPECT_THAT(Where("(value == 1 || value > 1) && value < 3"), ElementsAre(1, 2));
  EXPECT_THAT(Where("!(value != 4)"), ElementsAre(4));
  EXPECT_THAT(Where("2 + 2 * value - 1 == 7 - 2 - 2"), ElementsAre(1)) << "- is done from the left";
  EXPECT_THAT(Where("-value * -value == 16"), ElementsAre(-4, 4));
  EXPECT_THAT(Where("false"), IsEmpty());
}

TEST(Filter, DividesAndTakesRestsAsTensorFlow) {
  // -5 .. 5 by floor: -5 = -2 * 3 + 1.
  EXPECT_THAT(Where("value % 3 == 1"), ElementsAre(-5, -2, 1, 4));
  EXPECT_THAT(Where("value % -3 == -1"), ElementsAre(-4, -1, 2, 5));
  EXPECT_THAT(Where("value / 2 == 1.5"), ElementsAre(3));
  EXPECT_THAT(Where("value % 0 == 0 && value > 3"), ElementsAre(4, 5));
  EXPECT_THAT(Where("value * 1.0 % 2 == 1"), ElementsAre(-5, -3, -1, 1, 3, 5));
}

TEST(Filter, IsExactForLargeIntegers) {
  const int64_t large = (int64_t{1} << 53) - 2;
  EXPECT_THAT(Where("value >= 9007199254740991", large, large + 2), ElementsAre(large + 1));
  EXPECT_THAT(Where("value + 9223372036854775807 < 0", 0, 2), ElementsAre(1)) << "integers wrap";
}

TEST(Filter, ComparesFloat32WithConstantsAsFloat32) {
  const std::string spec = R"({"source": {"tensors": [{"name": "x", "dtype": "DTYPE", "shape": [3, 2],
      "values": [0.1, 1, 0.2, 2, 0.3, 3]}]}, "pipeline": [{"filter": {"expression": "x[0] == 0.1 || x[0] + x[1] > 3.25"}}]})";
  for (const std::string dtype : {"float32", "float64"}) {
    std::string with = spec;
    with.replace(with.find("DTYPE"), 5, dtype);
    PipelineRun run(with);
    EXPECT_EQ(run.Epoch().size(), 2u) << dtype;
  }
}

TEST(Filter, SeesWhatMapsBeforeItMadeAndEnumerateNumbersWhatPassed) {
  PipelineRun run(RangeSpec(6, R"([{"map": {"cast": "float32"}}, {"map": {"scale": 0.5, "as": "half"}},
      {"filter": {"expression": "half * 2 == value && half > 1"}}, {"enumerate": {}}, {"batch": {"size": 8}}])"));
  EXPECT_THAT(run.Values<int64_t>(0), ElementsAre(0, 1, 2)) << run.status().message();
  EXPECT_THAT(run.Values<float>(1), ElementsAre(3, 4, 5));
  EXPECT_THAT(run.Values<float>(2), ElementsAre(1.5f, 2, 2.5f));
}

TEST(Filter, PassesTheSameWhateverTheSizeOfBlocks) {
  // One record at a time to the shuffle's refill, hundreds at a time to its buffer.
  PipelineRun run(RangeSpec(3000, R"([{"filter": {"expression": "value % 3 == 0"}}, {"shuffle": {"bufferSize": 600,
      "seed": 1}}, {"batch": {"size": 64}}])"));
  auto values = run.Values<int64_t>();
  std::sort(values.begin(), values.end());
  ASSERT_EQ(values.size(), 1000u);
  for (size_t i = 0; i < 1000; ++i) EXPECT_EQ(values[i], static_cast<int64_t>(3 * i));
}

TEST(Filter, DeliversWhatStandsBeforeARecordThatCannotBeDecoded) {
  Folder folder;
  std::string file;
  for (int64_t i = 0; i < 4; ++i) file += TFRecordOf(ExampleOf({{"x", Int64List({i})}}));
  const size_t bad_at = file.size();
  folder.Write("a.tfrecord", file + TFRecordOf("nothing"));
  PipelineRun run(R"({"source": {"files": {"paths": ["a.tfrecord"]}}, "features": [{"name": "x", "dtype": "int64"}],
      "pipeline": [{"filter": {"expression": "x != 1"}}, {"batch": {"size": 1}}]})",
                  {}, folder.path());
  const auto batches = run.Epoch();
  ASSERT_EQ(batches.size(), 3u);
  EXPECT_THAT(batches[2].Values<int64_t>(), ElementsAre(3));
  EXPECT_THAT(run.status().message(), HasSubstr("a.tfrecord: record at byte " + std::to_string(bad_at)));
}

}  // namespace
}  // namespace headrace::side
