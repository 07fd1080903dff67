// Strings and ragged components: what is delivered of them, what is refused, and how much room they get.
#include "common/spec/variable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "common/spec/components.h"

namespace headrace {
namespace {

using nlohmann::json;
using testing::HasSubstr;

json Spec(const std::string& features, const std::string& pipeline) {
  return {{"source", {{"files", {{"paths", {"a"}}}}}},
          {"features", json::parse(features)},
          {"pipeline", json::parse(pipeline)}};
}

constexpr char kText[] = R"([{"name": "text", "dtype": "string"}])";
constexpr char kTokens[] = R"([{"name": "tokens", "dtype": "int64", "shape": [-1]}, {"name": "y", "dtype": "int64"}])";
constexpr char kBatch[] = R"([{"batch": {"size": 4}}])";

std::vector<TensorSpec> Delivered(const json& spec, const Topology& topology = {}) {
  const auto parsed = ParseInputSpec(spec);
  EXPECT_TRUE(parsed.ok()) << parsed.status().ToString();
  return parsed.ok() ? ElementSpec(CompilePlan(*parsed, "test"), topology) : std::vector<TensorSpec>{{}};
}

std::string ErrorOf(const json& spec) {
  const auto parsed = ParseInputSpec(spec);
  return parsed.ok() ? "" : parsed.status().message();
}

// The texts are TensorFlow's for tf.data datasets of the same components.
TEST(Variable, ElementSpecIsTensorFlows) {
  EXPECT_EQ(ToString(Delivered(Spec(kText, kBatch))), "TensorSpec(shape=(None,), dtype=tf.string, name=None)");
  EXPECT_EQ(ToString(Delivered(Spec(kText, "[]"))), "TensorSpec(shape=(), dtype=tf.string, name=None)");
  EXPECT_EQ(ToString(Delivered(Spec(kTokens, kBatch))),
            "(RaggedTensorSpec(TensorShape([None, None]), tf.int64, 1, tf.int64), "
            "TensorSpec(shape=(None,), dtype=tf.int64, name=None))");
  EXPECT_EQ(Delivered(Spec(R"([{"name": "v", "shape": [-1, 3]}])", kBatch))[0].ToString(),
            "RaggedTensorSpec(TensorShape([None, None, 3]), tf.float32, 1, tf.int64)");
  EXPECT_EQ(Delivered(Spec(R"([{"name": "v", "shape": [-1]}])", "[]"))[0].ToString(),
            "TensorSpec(shape=(None,), dtype=tf.float32, name=None)")
      << "one record is no ragged tensor";
}

TEST(Variable, AStaticBatchOfRaggedRowsIsCutForReplicas) {
  json spec = Spec(kTokens, R"([{"batch": {"size": 8, "dropRemainder": true}}])");
  EXPECT_EQ(Delivered(spec, {1, 0, 2})[0].ToString(),
            "RaggedTensorSpec(TensorShape([4, None]), tf.int64, 1, tf.int64)");
  EXPECT_EQ(Delivered(spec, {1, 0, 3})[0].ToString(),
            "RaggedTensorSpec(TensorShape([None, None]), tf.int64, 1, tf.int64)");
}

TEST(Variable, ElementSpecIsReadBackFromJson) {
  const std::vector<TensorSpec> components = {
      {"text", DType::kString, {-1}}, {"tokens", DType::kInt64, {-1, -1}, true}, {"x", DType::kFloat32, {-1, 3}}};
  const auto read = ParseElementSpec(ToJson(components));
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(*read, components);
  for (const char* bad : {R"([{"name": "t", "dtype": "int64", "shape": [-1], "ragged": true}])",
                          R"([{"name": "t", "dtype": "int64", "shape": [-1, 3], "ragged": true}])",
                          R"([{"name": "t", "dtype": "string", "shape": [-1, -1], "ragged": true}])",
                          R"([{"name": "t", "dtype": "int64", "shape": [-1, -1], "ragged": 1}])"}) {
    EXPECT_FALSE(ParseElementSpec(json::parse(bad)).ok()) << bad;
  }
}

TEST(Variable, WithoutFeaturesARecordIsAString) {
  json spec = Spec("[]", kBatch);
  EXPECT_EQ(Delivered(spec), (std::vector<TensorSpec>{{"record", DType::kString, {-1}}}));
  spec["pipeline"] = json::parse(R"([{"map": {"decodeRaw": {"dtype": "int16", "shape": [2, 3]}}},
                                     {"batch": {"size": 4, "dropRemainder": true}}])");
  EXPECT_EQ(Delivered(spec), (std::vector<TensorSpec>{{"record", DType::kInt16, {4, 2, 3}}}));
  const auto function = ParseInputSpec(json::parse(R"({"source": {"function": {"command": ["a"]}}})"));
  ASSERT_TRUE(function.ok());
  EXPECT_TRUE(RecordComponents(*function, 0, nullptr).empty()) << "what a function yields has no records";
}

TEST(Variable, StringsGoThroughTwoBatches) {
  EXPECT_EQ(ToString(Delivered(Spec(kText, R"([{"batch": {"size": 2}}, {"batch": {"size": 4}}])"))),
            "TensorSpec(shape=(None, None), dtype=tf.string, name=None)");
}

TEST(Variable, RaggedTakesCastScaleAndOffset) {
  const auto components = Delivered(Spec(kTokens, R"([
      {"map": {"feature": "tokens", "cast": "float32", "as": "half"}}, {"batch": {"size": 4}},
      {"map": {"feature": "half", "scale": 0.5, "offset": 1}}])"));
  EXPECT_EQ(components[2], (TensorSpec{"half", DType::kFloat32, {-1, -1}, true}));
}

TEST(Variable, WhatCannotBeRaggedIsRefused) {
  const auto map = [](const std::string& operation) {
    return ErrorOf(Spec(kTokens, R"([{"map": {"feature": "tokens", )" + operation + R"(}}, {"batch": {"size": 4}}])"));
  };
  for (const char* operation : {R"("oneHot": {"depth": 3})", R"("reshape": [2])"}) {
    EXPECT_THAT(map(operation), HasSubstr("spec.pipeline[0].map: component \"tokens\" varies in length, which only "
                                          "cast, scale and offset take; pad it with a paddedBatch"));
  }
  EXPECT_THAT(map(R"("stringToNumber": "int64")"), HasSubstr("is int64 and no string"));
  EXPECT_THAT(ErrorOf(Spec(kTokens, R"([{"batch": {"size": 2}}, {"batch": {"size": 4}}])")),
              HasSubstr("spec.pipeline[1].batch: component \"tokens\" varies in length, and only one batch"));
  EXPECT_THAT(ErrorOf(Spec(kTokens, R"([{"filter": {"expression": "tokens[0] > 1"}}])")),
              HasSubstr("\"tokens\" is of variable length, which a filter cannot look into"));
}

TEST(Variable, APaddedBatchPadsAllOrNone) {
  EXPECT_THAT(ErrorOf(Spec(R"([{"name": "a", "shape": [-1]}, {"name": "b", "shape": [-1]}])",
                           R"([{"paddedBatch": {"size": 4, "paddedShapes": {"a": [8]}}}])")),
              HasSubstr("spec.features[1].shape: varies in length, and the paddedBatch does not pad it: add b: "
                        "[LENGTH] to its paddedShapes"));
}

TEST(Variable, TpuTakesNeither) {
  const auto tpu = [](const std::string& features) {
    json spec = Spec(features, R"([{"batch": {"size": 4, "dropRemainder": true}}])");
    spec["distribution"]["strategy"] = "TPU";
    return ErrorOf(spec);
  };
  EXPECT_THAT(tpu(kText), HasSubstr("spec.distribution.strategy: TPU demands static shapes, and component \"text\" is "
                                    "a string; make numbers of it with a map"));
  EXPECT_THAT(tpu(kTokens), HasSubstr("component \"tokens\" varies in length; pad it with a paddedBatch"));
}

TEST(Variable, RoomIsTheFieldOrByTheNumberOfRecords) {
  const auto room = [](const json& spec, int64_t records) { return VariableBytes(*ParseInputSpec(spec), records); };
  json spec = Spec(kText, kBatch);
  EXPECT_EQ(room(spec, 4), uint64_t{1} << 20);
  EXPECT_EQ(room(spec, 1024), uint64_t{4096} * 1024);
  EXPECT_EQ(room(spec, INT64_MAX), uint64_t{1} << 40) << "more than a slot can have";
  spec["delivery"]["maxBatchBytes"] = 100;
  EXPECT_EQ(room(spec, 4), 100u);
  EXPECT_EQ(room(spec, 1024), 100u);
  spec["features"] = json::parse(R"([{"name": "x"}])");
  EXPECT_EQ(room(spec, 4), 0u) << "nothing varies";
  spec["features"] = json::parse(kText);
  spec["pipeline"] = json::parse(R"([{"map": {"stringToNumber": "int64"}}])");
  EXPECT_EQ(room(spec, 4), 0u) << "nothing varies by the end";
  const Status outgrown = OutgrewVariableBytes(101, 100);
  EXPECT_EQ(outgrown.code(), Code::kInvalidArgument);
  for (const char* part : {"spec.delivery.maxBatchBytes", "101", "100"})
    EXPECT_THAT(outgrown.message(), HasSubstr(part));
}

}  // namespace
}  // namespace headrace
