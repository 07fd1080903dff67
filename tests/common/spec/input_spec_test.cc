#include "common/spec/input_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace headrace {
namespace {

using nlohmann::json;
using testing::HasSubstr;

json Good() {
  return json::parse(R"({
    "source": {"files": {"paths": ["/data/*.tfrecord"], "volume": {"configMap": {"name": "d"}}}},
    "features": [{"name": "x", "dtype": "float32", "shape": [8]}, {"name": "y", "dtype": "int64", "default": [0]}],
    "pipeline": [{"shuffle": {"bufferSize": 100, "seed": 7}}, {"repeat": {"count": 3}}, {"batch": {"size": 16}}]
  })");
}

std::string ErrorOf(const json& spec) {
  const auto parsed = ParseInputSpec(spec);
  return parsed.ok() ? "" : parsed.status().message();
}

TEST(InputSpec, WritesOutItsDefaultsAndReadsThemBackUnchanged) {
  const auto spec = ParseInputSpec(Good());
  ASSERT_TRUE(spec.ok()) << spec.status().message();
  const json written = ToJson(*spec);
  EXPECT_EQ(written["distribution"]["autoShardPolicy"], "Auto");
  EXPECT_EQ(written["distribution"]["rebatch"], "PerBatch");
  EXPECT_EQ(written["pipeline"][0]["shuffle"]["reshuffleEachIteration"], true);
  EXPECT_FALSE(written["source"]["files"].contains("volume")) << "where files are mounted from is not part of a plan";
  const auto again = ParseInputSpec(written);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(ToJson(*again), written);
}

struct BadCase {
  const char* pointer;  // where in Good() the patch goes
  const char* value;
  const char* field;  // the path that the message must name
  const char* says;
};

class BadSpec : public testing::TestWithParam<BadCase> {};

TEST_P(BadSpec, IsRefusedWithFieldValueAndRemedy) {
  json spec = Good();
  spec[json::json_pointer(GetParam().pointer)] = json::parse(GetParam().value);
  const std::string error = ErrorOf(spec);
  EXPECT_THAT(error, HasSubstr(std::string(GetParam().field) + ": "));
  EXPECT_THAT(error, HasSubstr(GetParam().says));
}

INSTANTIATE_TEST_SUITE_P(
    All, BadSpec,
    testing::Values(
        BadCase{"/source/range", R"({"stop": 3})", "spec.source", "exactly one of"},
        BadCase{"/source/files/path", R"(["x"])", "spec.source.files.path", "did you mean \"paths\"?"},
        BadCase{"/source/files/format", R"("TFRecords")", "spec.source.files.format", "did you mean \"TFRecord\"?"},
        BadCase{"/source/files/paths", "[]", "spec.source.files.paths", "0 items"},
        BadCase{"/pipeline/2/batch/size", "0", "spec.pipeline[2].batch.size", "0 is not a whole number from 1"},
        BadCase{"/pipeline/2/batch/size", "2.5", "spec.pipeline[2].batch.size", "2.5 is not a whole number"},
        BadCase{"/pipeline/2/batch/dropReminder", "true", "spec.pipeline[2].batch.dropReminder",
                "did you mean \"dropRemainder\"?"},
        BadCase{"/pipeline/0", R"({"shufle": {"bufferSize": 2}})", "spec.pipeline[0].shufle",
                "did you mean \"shuffle\"?"},
        BadCase{"/pipeline/0", R"({"take": {"count": 1}, "skip": {"count": 1}})", "spec.pipeline[0]", "exactly one of"},
        BadCase{"/pipeline/0", R"({})", "spec.pipeline[0]", "exactly one of"},
        BadCase{"/pipeline/0", R"({"repeat": null})", "spec.pipeline[0]", "exactly one of"},
        BadCase{"/pipeline/1", R"({"interleave": {}})", "spec.pipeline[1].interleave", "must come first"},
        BadCase{"/pipeline/1", R"({"shard": {"by": "Hint"}})", "spec.pipeline[1].shard", "under policy Hint only"},
        BadCase{"/pipeline/1", R"({"shard": {"numShards": 2, "index": 2}})", "spec.pipeline[1].shard.index",
                "less than"},
        BadCase{"/features/0/shape", "[0]", "spec.features[0].shape", "from 1"},
        BadCase{"/features/1/name", R"("x")", "spec.features[1].name", "stands twice"},
        BadCase{"/features/0/default", "[1, 2]", "spec.features[0].default", "takes 1 or 8"},
        BadCase{"/features", "[]", "spec.features", "is required"},
        BadCase{"/distribution", R"({"autoShardPolicy": "Data", "rebatch": "Continuous"})", "spec.distribution.rebatch",
                "use PerBatch"},
        BadCase{"/distribution", R"({"replicasPerWorker": 0})", "spec.distribution.replicasPerWorker", "from 1"},
        BadCase{"/delivery", R"([])", "spec.delivery", "must be an object"}));

TEST(InputSpec, ReportsEveryErrorAtOnce) {
  json spec = Good();
  spec["pipeline"][2]["batch"]["size"] = -1;
  spec["features"][0]["dtype"] = "float";
  std::vector<FieldError> errors;
  EXPECT_FALSE(ParseInputSpec(spec, &errors).ok());
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_EQ(errors[0].field, "spec.features[0].dtype");
  EXPECT_EQ(errors[1].field, "spec.pipeline[2].batch.size");
}

}  // namespace
}  // namespace headrace
