#include "cli/conformance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "common/spec/input_spec.h"

namespace headrace::cli {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// range(6).batch(4) over 1 worker x 2 replicas: the guide's first example of batching.
json RangeCase() {
  return json::parse(R"case({"name": "a", "api": "distribute_dataset", "source": {"kind": "range", "count": 6},
    "transforms": [{"op": "batch", "size": 4, "drop_remainder": false}], "workers": 1, "replicas_per_worker": 2,
    "policy": "AUTO", "rebatch": "PerBatch", "warning_contains": "AUTO sharding policy will apply DATA",
    "element_spec": "TensorSpec(shape=(None,), dtype=tf.int64, name=None)",
    "expect": {"steps": [[[[0,1],[2,3]],[[4],[5]]]], "global_steps": 2, "policy_applied": "DATA"}})case");
}

json ErrorCase() {
  return json::parse(R"({"name": "e", "api": "distribute_dataset",
    "source": {"kind": "files", "files": [[0, 1], [], [2]]}, "transforms": [{"op": "batch", "size": 4}],
    "workers": 4, "replicas_per_worker": 1, "policy": "FILE", "rebatch": "PerBatch",
    "expect": {"error": "InvalidArgument", "message_contains": "which is not enough for the required 4 shards/workers"}})");
}

ConformanceCase Parsed(const json& line) {
  auto parsed = ParseCase(line.dump());
  EXPECT_TRUE(parsed.ok()) << parsed.status().ToString();
  return *parsed;
}

json SpecOf(const json& line, const std::vector<std::string>& paths = {}) {
  const auto spec = CaseSpec(Parsed(line), {"/case", paths}, "/headrace");
  EXPECT_TRUE(spec.ok()) << spec.status().ToString();
  return spec.ok() ? *spec : json();
}

WorkerObservation Right() {
  WorkerObservation worker;
  worker.steps = std::make_shared<json>(json::parse("[[[0,1],[2,3]],[[4],[5]]]"));
  worker.element_spec = "TensorSpec(shape=(None,), dtype=tf.int64, name=None)";
  worker.policy = "Data";
  worker.warnings = {"spec.distribution.autoShardPolicy: Auto became Data, since ..."};
  return worker;
}

std::vector<std::string> Compare(const json& line, const WorkerObservation& worker) {
  const ConformanceCase parsed = Parsed(line);
  return CompareCase(parsed, std::vector<WorkerObservation>(static_cast<size_t>(parsed.workers), worker));
}

TEST(ConformanceTest, TheRightStepsPass) { EXPECT_THAT(Compare(RangeCase(), Right()), IsEmpty()); }

TEST(ConformanceTest, AnyWrongValueFails) {
  WorkerObservation worker = Right();
  worker.steps = std::make_shared<json>(json::parse("[[[0,1],[2,3]],[[4],[6]]]"));
  EXPECT_THAT(Compare(RangeCase(), worker), ElementsAre("worker 0, step 1: expected [[4],[5]], got [[4],[6]]"));
}

TEST(ConformanceTest, AMissingOrAnExtraStepFails) {
  WorkerObservation worker = Right();
  worker.steps = std::make_shared<json>(json::parse("[[[0,1],[2,3]]]"));
  EXPECT_THAT(Compare(RangeCase(), worker), ElementsAre("worker 0, step 1: expected [[4],[5]], got \"the end\""));
  worker.steps = std::make_shared<json>(json::parse("[[[0,1],[2,3]],[[4],[5]],[[],[]]]"));
  EXPECT_THAT(Compare(RangeCase(), worker), ElementsAre("worker 0, step 2: expected \"the end\", got [[],[]]"));
}

TEST(ConformanceTest, WrongDescriptionsFail) {
  WorkerObservation worker = Right();
  worker.element_spec = "TensorSpec(shape=(2,), dtype=tf.int64, name=None)";
  worker.policy = "Off";
  worker.warnings.clear();
  EXPECT_THAT(Compare(RangeCase(), worker),
              ElementsAre(HasSubstr("element_spec"), HasSubstr("policy_applied"), HasSubstr("warnings")));
}

TEST(ConformanceTest, AWarningWithoutAFallBackFails) {
  json line = RangeCase();
  line["policy"] = "OFF";
  line["expect"]["policy_applied"] = "OFF";
  line.erase("warning_contains");
  WorkerObservation worker = Right();
  worker.policy = "Off";
  EXPECT_THAT(Compare(line, worker), ElementsAre(HasSubstr("warnings")));
}

TEST(ConformanceTest, AnUnexpectedErrorFails) {
  WorkerObservation worker = Right();
  worker.error = "Unavailable: gone";
  EXPECT_THAT(Compare(RangeCase(), worker), ElementsAre(HasSubstr("Unavailable: gone")));
}

TEST(ConformanceTest, GlobalStepsAreTheLongestWorkers) {
  json line = RangeCase();
  line["expect"]["global_steps"] = 3;
  EXPECT_THAT(Compare(line, Right()), ElementsAre("global_steps: expected 3, got 2"));
  line["expect"]["global_steps"] = nullptr;  // endless data, cut off by max_steps
  EXPECT_THAT(Compare(line, Right()), IsEmpty());
}

TEST(ConformanceTest, AWorkerThatEndsEarlyHasStepsWithoutDataUntilTheLastEnds) {
  json line = RangeCase();
  line["workers"] = 2;
  line["expect"]["steps"] = json::parse("[[[[0,1],[2,3]],[[4],[5]]], [[[0,1],[2,3]]]]");
  WorkerObservation short_of_data = Right();
  short_of_data.steps = std::make_shared<json>(json::parse("[[[0,1],[2,3]],[[],[]]]"));
  for (const json& global_steps : {json(2), json(nullptr)}) {  // null: cut off by max_steps
    line["expect"]["global_steps"] = global_steps;
    EXPECT_THAT(CompareCase(Parsed(line), {Right(), short_of_data}), IsEmpty());
    EXPECT_THAT(CompareCase(Parsed(line), {Right(), Right()}), ElementsAre(HasSubstr("worker 1, step 1")));
  }
}

TEST(ConformanceTest, OptionalStepsAreComparedWhereTheyDiffer) {
  json line = RangeCase();
  line["expect"]["optional_steps"] = json::parse("[[[[0,1],[2,3]],[[4],[5]],[[6],[]]]]");
  EXPECT_TRUE(Parsed(line).also_as_optional);
  WorkerObservation worker = Right();
  worker.optional_steps = worker.steps;
  EXPECT_THAT(Compare(line, worker), ElementsAre(HasSubstr("by get_next_as_optional, step 2: expected [[6],[]]")));
}

TEST(ConformanceTest, ErrorsMustNameFieldAndNumbersOnEveryWorker) {
  WorkerObservation worker;
  worker.steps = std::make_shared<json>(json::array());
  worker.error = "InvalidArgument: spec.source.files.paths: 3 files for 4 workers; use Data";
  EXPECT_THAT(Compare(ErrorCase(), worker), IsEmpty());
  worker.error = "InvalidArgument: spec.source.files.paths: too few files";
  EXPECT_THAT(Compare(ErrorCase(), worker), SizeIs(8));  // neither number, on each of the four workers
  worker.error = "InvalidArgument: 3 files for 4 workers";
  EXPECT_THAT(Compare(ErrorCase(), worker), SizeIs(4));
  worker.error.clear();
  EXPECT_THAT(Compare(ErrorCase(), worker), SizeIs(4));
}

TEST(ConformanceTest, AnErrorAfterABatchIsTooLate) {
  WorkerObservation worker;
  worker.steps = std::make_shared<json>(json::parse("[[[0]]]"));
  worker.error = "InvalidArgument: spec.source.files.paths: 3 files for 4 workers; use Data";
  EXPECT_THAT(Compare(ErrorCase(), worker), SizeIs(4));
}

TEST(ConformanceTest, AMissingWorkerFails) {
  const ConformanceCase parsed = Parsed(ErrorCase());
  EXPECT_THAT(CompareCase(parsed, {}), ElementsAre("number of workers: expected 4, got 0"));
}

TEST(ConformanceTest, SpecOfARange) {
  EXPECT_EQ(SpecOf(RangeCase()), json::parse(R"({"source": {"range": {"start": 0, "stop": 6}},
    "pipeline": [{"batch": {"size": 4, "dropRemainder": false}}],
    "distribution": {"autoShardPolicy": "Auto", "rebatch": "PerBatch", "replicasPerWorker": 2}})"));
}

TEST(ConformanceTest, SpecOfFiles) {
  json line = ErrorCase();
  line["policy"] = "HINT";
  line["file_transforms"] = json::parse(R"([{"op": "shard", "num_shards": "SHARD_HINT", "index": "SHARD_HINT"}])");
  line["transforms"] = json::parse(R"([{"op": "interleave", "cycle_length": 2, "block_length": 3}, {"op": "take",
    "count": 5}, {"op": "batch", "size": 4, "drop_remainder": true}, {"op": "map_identity"}])");
  EXPECT_EQ(SpecOf(line, {"/a", "/b"}), json::parse(R"({"source": {"files": {"format": "TFRecord",
      "paths": ["/a", "/b"], "pipeline": [{"shard": {"by": "Hint"}}]}},
    "features": [{"name": "x", "dtype": "int64", "shape": []}],
    "pipeline": [{"interleave": {"cycleLength": 2, "blockLength": 3}}, {"take": {"count": 5}},
                 {"batch": {"size": 4, "dropRemainder": true}}],
    "distribution": {"autoShardPolicy": "Hint", "rebatch": "PerBatch", "replicasPerWorker": 1}})"));
}

TEST(ConformanceTest, SpecOfAConstantAndOfAGenerator) {
  json line = RangeCase();
  line["source"] = json::parse(R"({"kind": "constant", "components": [[1.0], [2.0, 3.0]]})");
  EXPECT_EQ(SpecOf(line)["source"], json::parse(R"({"tensors": [
    {"name": "c0", "dtype": "float32", "shape": [1, 1], "values": [1.0]},
    {"name": "c1", "dtype": "float32", "shape": [1, 2], "values": [2.0, 3.0]}]})"));
  line["source"] = json::parse(R"({"kind": "generator", "width": 4})");
  line["transforms"] = json::array();
  EXPECT_EQ(SpecOf(line)["source"], json::parse(R"({"range": {"start": 0, "dtype": "float32"}})"));
  EXPECT_EQ(SpecOf(line)["pipeline"], json::parse(R"([{"batch": {"size": 4, "dropRemainder": true}}])"));
}

TEST(ConformanceTest, FunctionsAreServedByTheCommandItself) {
  json line = RangeCase();
  line["api"] = "from_function";
  EXPECT_EQ(SpecOf(line)["source"],
            json::parse(R"({"function": {"command": ["/headrace", "verify", "--serve", "/case"]}})"));
}

TEST(ConformanceTest, WhatCannotBeSaidIsNotSupported) {
  json line = RangeCase();
  line["api"] = "from_nowhere";
  EXPECT_THAT(CaseSpec(Parsed(line), {}, "").status().message(), HasSubstr("not supported: api from_nowhere"));
  line = RangeCase();
  line["transforms"].push_back({{"op", "window"}});
  EXPECT_THAT(CaseSpec(Parsed(line), {}, "").status().message(), HasSubstr("transformation window"));
}

TEST(ConformanceTest, MalformedCasesAreErrors) {
  EXPECT_FALSE(ParseCase("{").ok());
  EXPECT_FALSE(ParseCase("{}").ok());
  json line = RangeCase();
  line["workers"] = 2;  // but steps of one worker
  EXPECT_FALSE(ParseCase(line.dump()).ok());
}

// The whole file: every case can be said in a spec, and only error cases are refused by it.
TEST(ConformanceTest, EveryCaseOfTheFileHasASpec) {
  std::ifstream file(HEADRACE_SOURCE_DIR "/tests/conformance/cases.jsonl");
  ASSERT_TRUE(file);
  std::string line;
  int cases = 0;
  while (std::getline(file, line)) {
    const auto parsed = ParseCase(line);
    ASSERT_TRUE(parsed.ok()) << parsed.status().ToString();
    ++cases;
    const CasePaths paths{"/case", std::vector<std::string>(CaseFiles(*parsed).size(), "/f")};
    const auto spec = CaseSpec(*parsed, paths, "/headrace");
    ASSERT_TRUE(spec.ok()) << parsed->name << ": " << spec.status().ToString();
    const auto accepted = ParseInputSpec(*spec);
    if (!parsed->json->at("expect").contains("error")) {
      EXPECT_TRUE(accepted.ok()) << parsed->name << ": " << accepted.status().ToString();
    }
  }
  EXPECT_EQ(cases, 618);
}

}  // namespace
}  // namespace headrace::cli
