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

TEST(InputSpec, KnowsWhereObjectsAreAndNotWhoseKeys) {
  json spec = Good();
  const std::string without = ToJson(*ParseInputSpec(spec)).dump();
  EXPECT_EQ(without.find("objectStore"), std::string::npos) << "plans of mounted files keep their hash";
  spec["source"]["files"]["paths"] = {"s3://bucket/a-*", "https://a.example/a?b=*"};
  spec["source"]["files"]["objectStore"] = {
      {"endpoint", "http://minio.example:9000"}, {"region", "eu-west-1"}, {"credentialsSecret", {{"name", "keys"}}}};
  const auto parsed = ParseInputSpec(spec);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(ToJson(*parsed)["source"]["files"]["objectStore"],
            json({{"endpoint", "http://minio.example:9000"}, {"region", "eu-west-1"}}));
}

TEST(InputSpec, ReadsBackEveryMap) {
  json spec = Good();
  spec["features"].push_back({{"name", "s"}, {"dtype", "string"}});
  const json maps = json::parse(R"([
      {"map": {"feature": "s", "decodeImage": {"shape": [2, 2, 3], "resize": "Bilinear"}, "as": "i"}},
      {"map": {"feature": "s", "decodeRaw": {"dtype": "int16", "shape": [2, 4]}, "as": "r"}},
      {"map": {"feature": "s", "stringToNumber": "float64"}}, {"map": {"feature": "x", "as": "z", "reshape": [2, -1]}},
      {"map": {"feature": "x", "scale": 0.5, "offset": -1}}, {"map": {"feature": "x", "offset": 2}},
      {"map": {"feature": "z", "scales": [1, 2, 3, 4], "offset": 1}}, {"map": {"feature": "z", "offsets": [1, 2, 3, 4]}},
      {"map": {"feature": "z", "transpose": [1, 0]}},
      {"map": {"feature": "y", "oneHot": {"depth": 3, "dtype": "int8"}}}, {"map": {"feature": "y", "cast": "bfloat16"}}])");
  spec["pipeline"] = maps;
  const auto parsed = ParseInputSpec(spec);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(ToJson(*parsed)["pipeline"], maps);
}

TEST(InputSpec, ReadsBackColumns) {
  json spec = Good();
  spec["source"]["files"]["format"] = "Parquet";
  spec["features"][0] = {{"name", "x"}, {"dtype", "int32"}, {"shape", {2, 1}}, {"columns", {"a", "b.c"}}};
  const auto parsed = ParseInputSpec(spec);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(parsed->features[0].columns, (std::vector<std::string>{"a", "b.c"}));
  EXPECT_EQ(ToJson(*parsed)["features"][0], spec["features"][0]);
  EXPECT_EQ(ToJson(*parsed)["source"]["files"]["format"], "Parquet");
}

// Which components they have is known when they are opened; until then a map of one of them may be right.
TEST(InputSpec, TakesTablesWithoutFeatures) {
  json spec = Good();
  spec["source"]["files"]["format"] = "Arrow";
  spec.erase("features");
  spec["pipeline"].push_back({{"map", {{"feature", "price"}, {"cast", "float32"}}}});
  EXPECT_EQ(ErrorOf(spec), "");
  spec["distribution"]["strategy"] = "TPU";
  EXPECT_THAT(ErrorOf(spec), HasSubstr("spec.features: is required with strategy TPU"));
}

TEST(InputSpec, RefusesWholeParquetFilesThatAreCompressed) {
  json spec = Good();
  spec["source"]["files"]["format"] = "Parquet";
  spec["source"]["files"]["compression"] = "Gzip";
  EXPECT_THAT(ErrorOf(spec), HasSubstr("spec.source.files.compression: does not go with format Parquet"));
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
        BadCase{"/source/files/paths", R"(["ftp://host/a"])", "spec.source.files.paths[0]",
                "s3, gs, http and https are offered"},
        BadCase{"/source/files/paths", R"(["s3://bucket/folder/"])", "spec.source.files.paths[0]", "name its objects"},
        BadCase{"/source/files/paths", R"(["gs:///key"])", "spec.source.files.paths[0]", "names no bucket"},
        BadCase{"/source/files/paths", R"(["s3://buck*/key"])", "spec.source.files.paths[0]", "names no bucket"},
        BadCase{"/source/files/paths", R"(["http://a.example/a-*"])", "spec.source.files.paths[0]",
                "web servers do not list their files"},
        BadCase{"/source/files/paths", R"(["https:\/\/me@a.example/a"])", "spec.source.files.paths[0]",
                "holds a login"},
        BadCase{"/source/files/objectStore", R"({"region": "eu-west-1"})", "spec.source.files.objectStore",
                "and there is none; leave it out"},
        BadCase{"/source/files/objectStore", R"({"endpoint": "minio:9000"})", "spec.source.files.objectStore.endpoint",
                "is https://HOST or https://HOST:PORT"},
        BadCase{"/source/files/objectStore", R"({"region": "EU"})", "spec.source.files.objectStore.region",
                "is a name such as eu-west-1"},
        BadCase{"/source/files/objectStore", R"({"credentialsSecret": {"key": "a"}})",
                "spec.source.files.objectStore.credentialsSecret.name", "is required"},
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
        BadCase{"/features/0/columns", R"(["a", 1])", "spec.features[0].columns[1]", "must be the name of a column"},
        BadCase{"/features/0/columns", R"(["a"])", "spec.features[0].columns", "names 1; the shape takes 8"},
        BadCase{"/features/1/columns", R"(["a"])", "spec.features[1].columns", "format is TFRecord"},
        BadCase{"/features/0/default", "[1, 2]", "spec.features[0].default", "takes 1 or 8"},
        BadCase{"/distribution", R"({"autoShardPolicy": "Data", "rebatch": "Continuous"})", "spec.distribution.rebatch",
                "use PerBatch"},
        BadCase{"/distribution", R"({"replicasPerWorker": 0})", "spec.distribution.replicasPerWorker", "from 1"},
        BadCase{"/features/0/dtype", R"("string")", "spec.features[0].shape", "must be [] for dtype string"},
        BadCase{"/pipeline/1", R"({"map": {"feature": "x", "decodeRaw": {"shape": [2]}}})", "spec.pipeline[1].map",
                "is float32 and no string; give the feature that holds the bytes dtype string"},
        BadCase{"/pipeline/1", R"({"map": {"feature": "x", "decodeRaw": {"dtype": "string"}}})",
                "spec.pipeline[1].map.decodeRaw.dtype", "is not one of"},
        BadCase{"/pipeline/1", R"({"map": {"feature": "x", "decodeRaw": {"shape": [-1]}}})",
                "spec.pipeline[1].map.decodeRaw.shape", "from 1"},
        BadCase{"/delivery", R"({"maxBatchBytes": 0})", "spec.delivery.maxBatchBytes",
                "0 is not a whole number from 1"},
        BadCase{"/delivery", R"({"resourceClaim": "My_GPU"})", "spec.delivery.resourceClaim",
                "\"My_GPU\" is no name of a pod's spec.resourceClaims"},
        BadCase{"/delivery", R"({"resourceClaim": "gpu-"})", "spec.delivery.resourceClaim", "with no '-' at an end"},
        BadCase{"/delivery", R"({"memory": "Host", "resourceClaim": "gpu"})", "spec.delivery.resourceClaim",
                "\"gpu\" does not go with memory Host"},
        BadCase{"/pipeline/1", R"({"map": {"cast": "float32"}})", "spec.pipeline[1].map",
                "feature is required where there are several components: \"x\" or \"y\""},
        BadCase{"/pipeline/1", R"({"map": {"feature": "z", "cast": "int8"}})", "spec.pipeline[1].map",
                "there is no component \"z\" here; did you mean \"x\"?"},
        BadCase{"/pipeline/1", R"({"map": {"feature": "x", "as": "y", "cast": "int8"}})", "spec.pipeline[1].map",
                "as: \"y\" is there already"},
        BadCase{"/pipeline/1", R"({"map": {"feature": "x"}})", "spec.pipeline[1].map", "exactly one operation"},
        BadCase{"/pipeline/1", R"({"map": {"feature": "x", "cast": "int8", "scale": 2}})", "spec.pipeline[1].map",
                "exactly one operation"},
        BadCase{"/pipeline/1", R"({"map": {"feature": "y", "scale": 2}})", "spec.pipeline[1].map",
                "component \"y\" is int64, and scale and offset act on floats; put a map {cast: float32} before"},
        BadCase{"/pipeline/1", R"({"map": {"feature": "x", "oneHot": {"depth": 2}}})", "spec.pipeline[1].map",
                "put a map {cast: int64} before"},
        BadCase{"/pipeline/1", R"({"map": {"feature": "x", "oneHot": {"depth": 0}}})",
                "spec.pipeline[1].map.oneHot.depth", "0 is not a whole number from 1"},
        BadCase{"/pipeline/1", R"({"map": {"feature": "x", "stringToNumber": "int32"}})", "spec.pipeline[1].map",
                "is float32 and no string"},
        BadCase{"/pipeline/1", R"({"map": {"feature": "x", "stringToNumber": "int8"}})",
                "spec.pipeline[1].map.stringToNumber", "is not one of"},
        BadCase{"/pipeline/1", R"({"map": {"feature": "x", "reshape": [3, -1]}})", "spec.pipeline[1].map",
                "8 values a record, and reshape [3,-1] does not hold as many"},
        BadCase{"/pipeline/1", R"({"map": {"feature": "x", "reshape": [-1, -1]}})", "spec.pipeline[1].map.reshape",
                "at most one"},
        BadCase{"/pipeline/1", R"({"map": {"feature": "x", "scale": "2"}})", "spec.pipeline[1].map.scale",
                "must be a number"},
        BadCase{"/pipeline/1", R"({"map": {"feature": "x", "scales": 2}})", "spec.pipeline[1].map.scales",
                "must be a list"},
        BadCase{"/pipeline/1", R"({"map": {"feature": "x", "offsets": [1, true]}})", "spec.pipeline[1].map.offsets[1]",
                "must be a number, not true"},
        BadCase{"/pipeline/1", R"({"map": {"feature": "x", "scales": [1, 2], "scale": 2}})",
                "spec.pipeline[1].map.scales", "stands beside scale; give one number for all, or a list"},
        BadCase{"/pipeline/1", R"({"map": {"feature": "x", "offsets": [1, 2]}})", "spec.pipeline[1].map",
                "has shape [8], and offsets holds 2 numbers; give as many as the last dimension has values"},
        BadCase{"/pipeline/1", R"({"map": {"feature": "x", "transpose": [1, 0]}})", "spec.pipeline[1].map",
                "has shape [8], and transpose [1,0] is of 2 dimensions; name each dimension of a record once"},
        BadCase{"/pipeline/1", R"({"map": {"feature": "x", "transpose": [1]}})", "spec.pipeline[1].map.transpose",
                "[1]: must name each dimension of a record once, from 0 to 0"},
        BadCase{"/pipeline/1", R"({"map": {"feature": "x", "transpose": [0, -1]}})", "spec.pipeline[1].map.transpose",
                "[0,-1]: must name each dimension"},
        BadCase{"/pipeline/1", R"({"filter": {"expression": "y < 5 && z > 1"}})", "spec.pipeline[1].filter",
                "at column 10: there is no component \"z\" here; did you mean"},
        BadCase{"/pipeline/3", R"({"filter": {"expression": "y < 5"}})", "spec.pipeline[3].filter",
                "must come before batch"},
        BadCase{"/pipeline/1", R"({"filter": {}})", "spec.pipeline[1].filter.expression", "is required"},
        BadCase{"/pipeline/0", R"({"interleave": {"numParallelCalls": 0}})",
                "spec.pipeline[0].interleave.numParallelCalls", "must not be 0; -1 is tf.data.AUTOTUNE"},
        BadCase{"/pipeline/1", R"({"cache": {"maxBytes": 0}})", "spec.pipeline[1].cache.maxBytes",
                "0 is not a whole number from 1"},
        BadCase{"/pipeline/1", R"({"map": {"feature": "x", "decodeImage": {"shape": [2, 2]}}})",
                "spec.pipeline[1].map.decodeImage.shape", "[2,2] must be [height, width, channels]"},
        BadCase{"/pipeline/1", R"({"map": {"feature": "x", "decodeImage": {"shape": [2, 2, 3]}}})",
                "spec.pipeline[1].map", "is float32 and no string; give the feature that holds the images dtype"},
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
