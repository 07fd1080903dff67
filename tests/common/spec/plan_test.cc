#include "common/spec/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace headrace {
namespace {

using nlohmann::json;
using testing::HasSubstr;

Plan PlanOf(const std::string& spec) {
  auto parsed = ParseInputSpec(json::parse(spec));
  EXPECT_TRUE(parsed.ok()) << parsed.status().message();
  return CompilePlan(std::move(parsed).value(), "ml/clicks");
}

std::string Range(const std::string& range, const std::string& pipeline, const std::string& rest = "") {
  return R"({"source": {"range": )" + range + R"(}, "pipeline": )" + pipeline + rest + "}";
}

TEST(Plan, HashNamesTheSpecAndNothingElse) {
  const Plan plan = PlanOf(Range(R"({"stop": 8})", R"([{"batch": {"size": 4}}])"));
  const Plan same = PlanOf(Range(R"({"stop": 8, "start": 0})", R"([{"batch": {"size": 4, "dropRemainder": false}}])"));
  const Plan other = PlanOf(Range(R"({"stop": 8})", R"([{"batch": {"size": 5}}])"));
  EXPECT_EQ(plan.hash.size(), 16u);
  EXPECT_EQ(plan.hash, same.hash) << "a default written out is the same plan";
  EXPECT_NE(plan.hash, other.hash);
}

TEST(Plan, SurvivesItsJsonAndRefusesAChangedOne) {
  const Plan plan = PlanOf(Range(R"({"stop": 8})", R"([{"batch": {"size": 4}}])"));
  json written = ToJson(plan);
  const auto again = ParsePlan(written);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(again->hash, plan.hash);
  EXPECT_EQ(again->input, "ml/clicks");
  written["spec"]["pipeline"][0]["batch"]["size"] = 5;
  EXPECT_THAT(ParsePlan(written).status().message(), HasSubstr("it was changed"));
}

TEST(Plan, AutoIsFileWithFilesAndElseDataWithAWarning) {
  const Plan range = PlanOf(Range(R"({"stop": 8})", R"([{"batch": {"size": 4}}])"));
  EXPECT_EQ(range.effective_policy, AutoShardPolicy::kData);
  ASSERT_EQ(range.warnings.size(), 1u);
  EXPECT_THAT(range.warnings[0], HasSubstr("Auto became Data"));
  const Plan files = PlanOf(R"({"source": {"files": {"paths": ["a"]}}, "features": [{"name": "x"}]})");
  EXPECT_EQ(files.effective_policy, AutoShardPolicy::kFile);
  EXPECT_TRUE(files.warnings.empty());
}

// tf.data's enumerate is a zip with a range; TensorFlow's auto_shard walks into both and finds the range unshardable.
TEST(Plan, EnumerateKeepsFilesFromBeingSharded) {
  const std::string source = R"({"source": {"files": {"paths": ["a", "b"]}}, "features": [{"name": "x"}],
                                "pipeline": [{"enumerate": {}}, {"batch": {"size": 4}}], "distribution": )";
  const Plan automatic = PlanOf(source + R"({"autoShardPolicy": "Auto"}})");
  EXPECT_EQ(automatic.effective_policy, AutoShardPolicy::kData);
  ASSERT_EQ(automatic.warnings.size(), 1u);
  EXPECT_THAT(automatic.warnings[0], HasSubstr("Auto became Data, since enumerate"));
  const Plan file = PlanOf(source + R"({"autoShardPolicy": "File"}})");
  EXPECT_TRUE(CheckTopology(file, {1, 0, 2}).ok()) << "one worker reads all files";
  EXPECT_THAT(CheckTopology(file, {2, 0, 2}).message(), HasSubstr("File shares out files among 2 workers, and enum"));
  EXPECT_FALSE(ParseInputSpec(json::parse(source + R"({"rebatch": "Continuous"}})")).ok())
      << "Auto is Data here, which cuts each batch on its own";
}

TEST(Plan, CardinalityFollowsTfData) {
  const auto cardinality = [](const std::string& range, const std::string& pipeline) {
    return Cardinality(PlanOf(Range(range, pipeline)).spec);
  };
  EXPECT_EQ(cardinality(R"({"stop": 10})", R"([{"batch": {"size": 4}}])"), 3);
  EXPECT_EQ(cardinality(R"({"stop": 10})", R"([{"batch": {"size": 4, "dropRemainder": true}}])"), 2);
  EXPECT_EQ(cardinality(R"({"start": 10, "stop": 0, "step": -3})", "[]"), 4);
  EXPECT_EQ(cardinality(R"({})", R"([{"batch": {"size": 4}}])"), kInfiniteCardinality);
  EXPECT_EQ(cardinality(R"({"stop": 3})", R"([{"repeat": {}}])"), kInfiniteCardinality);
  EXPECT_EQ(cardinality(R"({"stop": 3})", R"([{"repeat": {}}, {"take": {"count": 7}}])"), 7);
  EXPECT_EQ(cardinality(R"({"stop": 5})", R"([{"skip": {"count": 2}}, {"repeat": {"count": 2}}])"), 6);
  EXPECT_EQ(cardinality(R"({"stop": 5})", R"([{"shard": {"numShards": 2, "index": 1}}])"), 2);
  EXPECT_EQ(cardinality(R"({"stop": 5})", R"([{"skip": {"count": -1}}])"), 0);
  EXPECT_EQ(cardinality(R"({})", R"([{"skip": {"count": -1}}])"), kInfiniteCardinality) << "as tf.data says";
  EXPECT_EQ(Cardinality(PlanOf(R"({"source": {"files": {"paths": ["a"]}}, "features": [{"name": "x"}]})").spec),
            kUnknownCardinality);
  EXPECT_EQ(Cardinality(PlanOf(R"({"source": {"files": {"paths": ["a"]}}, "features": [{"name": "x"}],
                                   "pipeline": [{"take": {"count": 0}}, {"repeat": {}}]})")
                            .spec),
            kInfiniteCardinality)
      << "tf.data looks at no count but the input's";
}

// TensorFlow 2.21, from_tensor_slices(paths).repeat(), whether read by TFRecordDataset, interleave or flat_map:
// cardinality() is -2, and two workers' element_spec is that of data that may end.
TEST(Plan, AnEndlessListOfFilesIsOfUnknownCardinality) {
  const auto spec = [](const std::string& pipeline) {
    return PlanOf(R"({"source": {"files": {"paths": ["a"], "pipeline": [{"repeat": {}}]}},
                      "features": [{"name": "x", "dtype": "int64", "shape": []}], "pipeline": )" +
                  pipeline + "}");
  };
  const Plan plan = spec(R"([{"batch": {"size": 8, "dropRemainder": true}}])");
  EXPECT_EQ(Cardinality(plan.spec), kUnknownCardinality);
  EXPECT_TRUE(IsEndless(plan.spec));
  EXPECT_EQ(ToString(ElementSpec(plan, {2, 0, 2})), "TensorSpec(shape=(None,), dtype=tf.int64, name=None)");
  EXPECT_EQ(ToString(ElementSpec(plan, {1, 0, 2})), "TensorSpec(shape=(4,), dtype=tf.int64, name=None)");
  const Plan cut = spec(R"([{"take": {"count": 16}}, {"batch": {"size": 8}}])");
  EXPECT_EQ(Cardinality(cut.spec), kUnknownCardinality);
  EXPECT_FALSE(IsEndless(cut.spec));
}

TEST(Plan, ElementSpecKeepsAStaticBatchOnlyWhereEveryReplicaGetsIt) {
  const std::string drop = R"([{"batch": {"size": 8, "dropRemainder": true}}])";
  const Plan finite = PlanOf(Range(R"({"stop": 80})", drop));
  const Plan endless = PlanOf(Range("{}", drop));
  EXPECT_EQ(ToString(ElementSpec(finite, {1, 0, 2})), "TensorSpec(shape=(4,), dtype=tf.int64, name=None)");
  EXPECT_EQ(ToString(ElementSpec(finite, {1, 0, 3})), "TensorSpec(shape=(None,), dtype=tf.int64, name=None)");
  EXPECT_EQ(ToString(ElementSpec(finite, {2, 0, 2})), "TensorSpec(shape=(None,), dtype=tf.int64, name=None)");
  EXPECT_EQ(ToString(ElementSpec(endless, {2, 0, 2})), "TensorSpec(shape=(2,), dtype=tf.int64, name=None)");
  EXPECT_EQ(ToString(ElementSpec(finite, {1, 0, 1})), "TensorSpec(shape=(8,), dtype=tf.int64, name=None)");
  const Plan indexed = PlanOf(Range(R"({"stop": 8})", R"([{"enumerate": {}}, {"batch": {"size": 4}}])"));
  EXPECT_EQ(
      ToString(ElementSpec(indexed, {1, 0, 1})),
      "(TensorSpec(shape=(None,), dtype=tf.int64, name=None), TensorSpec(shape=(None,), dtype=tf.int64, name=None))");
}

TEST(Plan, RefusesATopologyItCannotServe) {
  const Plan unbatched = PlanOf(Range(R"({"stop": 8})", "[]"));
  EXPECT_TRUE(CheckTopology(unbatched, {1, 0, 1}).ok());
  EXPECT_THAT(CheckTopology(unbatched, {2, 0, 1}).message(), HasSubstr("add a batch"));
  const Plan file = PlanOf(
      Range(R"({"stop": 8})", R"([{"batch": {"size": 4}}])", R"(, "distribution": {"autoShardPolicy": "File"})"));
  EXPECT_TRUE(CheckTopology(file, {1, 0, 2}).ok());
  EXPECT_THAT(CheckTopology(file, {3, 0, 2}).message(), HasSubstr("spec.distribution.autoShardPolicy: File"));
  const Plan mirrored =
      PlanOf(Range(R"({"stop": 8})", R"([{"batch": {"size": 4}}])", R"(, "distribution": {"strategy": "Mirrored"})"));
  EXPECT_THAT(CheckTopology(mirrored, {2, 0, 1}).message(), HasSubstr("use MultiWorkerMirrored"));
}

std::string Strategy(const std::string& name, const std::string& policy = "Auto") {
  return R"(, "distribution": {"strategy": ")" + name + R"(", "autoShardPolicy": ")" + policy + "\"}";
}

TEST(Strategies, TpuDemandsStaticShapesAndEqualParts) {
  const auto check = [](const std::string& pipeline, const Topology& topology) {
    return CheckTopology(PlanOf(Range(R"({"stop": 64})", pipeline, Strategy("TPU"))), topology).message();
  };
  const std::string drop = R"([{"batch": {"size": 8, "dropRemainder": true}}])";
  EXPECT_EQ(check(drop, {2, 0, 4}), "");
  EXPECT_EQ(check("[]", {1, 0, 1}), "");
  EXPECT_THAT(check(R"([{"batch": {"size": 8}}])", {2, 0, 4}),
              HasSubstr("dimension 0 of component \"value\" can vary: TensorSpec(shape=(None,), dtype=tf.int64, "
                        "name=None); give every batch of spec.pipeline dropRemainder: true"));
  EXPECT_THAT(check(R"([{"batch": {"size": 2}}, {"batch": {"size": 8, "dropRemainder": true}}])", {1, 0, 2}),
              HasSubstr("dimension 1 of component \"value\""));
  EXPECT_THAT(check(drop, {3, 0, 1}), HasSubstr("a global batch of 8 cannot be cut into 3 equal parts, one for each "
                                                "replica; make the size of the last batch of spec.pipeline 6 or 9"));
  const Plan plan = PlanOf(Range(R"({"stop": 64})", drop, Strategy("TPU")));
  EXPECT_EQ(ToString(ElementSpec(plan, {2, 1, 2})), "TensorSpec(shape=(2,), dtype=tf.int64, name=None)");
}

TEST(Strategies, ParameterServerWorkersAreByThemselves) {
  const std::string batch = R"([{"batch": {"size": 8, "dropRemainder": true}}])";
  const Plan plan = PlanOf(Range(R"({"stop": 64})", batch, Strategy("ParameterServer")));
  EXPECT_EQ(plan.effective_policy, AutoShardPolicy::kOff);
  EXPECT_TRUE(plan.warnings.empty());
  EXPECT_EQ(ToString(ElementSpec(plan, {5, 3, 2})), "TensorSpec(shape=(4,), dtype=tf.int64, name=None)");
  EXPECT_TRUE(CheckTopology(PlanOf(Range(R"({"stop": 64})", "[]", Strategy("ParameterServer"))), {5, 3, 1}).ok())
      << "a worker with one replica cuts nothing";
  const auto refused = ParseInputSpec(json::parse(Range(R"({"stop": 8})", batch, Strategy("ParameterServer", "Data"))));
  EXPECT_THAT(refused.status().message(),
              HasSubstr("spec.distribution.autoShardPolicy: \"Data\" does not go with strategy ParameterServer"));
}

TEST(Strategies, OnlyWorkersThatShareBatchesAgreeOnTheirEnds) {
  const auto agrees = [](const char* strategy, const Topology& topology) {
    return AgreesOnEnds(PlanOf(Range(R"({"stop": 8})", R"([{"batch": {"size": 4}}])", Strategy(strategy))), topology);
  };
  EXPECT_TRUE(agrees("MultiWorkerMirrored", {2, 0, 1}));
  EXPECT_TRUE(agrees("TPU", {2, 1, 4}));
  EXPECT_FALSE(agrees("MultiWorkerMirrored", {1, 0, 8}));
  EXPECT_FALSE(agrees("ParameterServer", {2, 0, 1}));
  EXPECT_FALSE(agrees("Mirrored", {2, 0, 1})) << "refused for several workers";
}

std::vector<std::string> WarningsOf(const std::string& spec, const Topology& topology) {
  const Plan plan = PlanOf(spec);
  std::vector<std::string> warnings = plan.warnings;
  for (const std::string& warning : TopologyWarnings(plan, topology)) warnings.push_back(warning);
  return warnings;
}

TEST(Warnings, NameFieldEffectAndRemedy) {
  using testing::ElementsAre;
  using testing::IsEmpty;
  const std::string off = Strategy("MultiWorkerMirrored", "Off");
  const auto range = [&](const std::string& pipeline, const Topology& topology = {}, const std::string& rest = "") {
    return WarningsOf(Range(R"({"stop": 64})", pipeline, rest.empty() ? off : rest), topology);
  };
  const auto files = [](const std::string& pipeline, const Topology& topology) {
    return WarningsOf(
        R"({"source": {"files": {"paths": ["a"]}}, "features": [{"name": "x"}], "pipeline": )" + pipeline + "}",
        topology);
  };
  EXPECT_THAT(range(R"([{"shuffle": {"bufferSize": 9}}, {"repeat": {}}, {"batch": {"size": 8}}])", {2, 0, 2}),
              IsEmpty());
  EXPECT_THAT(range(R"([{"batch": {"size": 8}}, {"shuffle": {"bufferSize": 9}}])"),
              ElementsAre(HasSubstr("spec.pipeline[1].shuffle: stands after a batch")));
  EXPECT_THAT(range(R"([{"repeat": {"count": 2}}, {"shuffle": {"bufferSize": 9}}])"),
              ElementsAre(HasSubstr("spec.pipeline[1].shuffle: stands after spec.pipeline[0].repeat")));
  EXPECT_THAT(range(R"([{"shuffle": {"bufferSize": 9, "reshuffleEachIteration": false}}, {"cache": {}}])"), IsEmpty());
  EXPECT_THAT(range(R"([{"shuffle": {"bufferSize": 9}}, {"cache": {}}])"),
              ElementsAre(HasSubstr("spec.pipeline[1].cache: stands after spec.pipeline[0].shuffle, so every epoch")));
  EXPECT_THAT(range(R"([{"repeat": {}}, {"cache": {}}])"),
              ElementsAre(HasSubstr("spec.pipeline[1].cache: stands after an endless spec.pipeline[0].repeat")));
  EXPECT_THAT(range(R"([{"cache": {}}, {"take": {"count": 3}}])"),
              ElementsAre(HasSubstr("spec.pipeline[1].take after it may end each pass before")));
  EXPECT_THAT(range(R"([{"shuffle": {"bufferSize": 9, "seed": 1}}])", {3, 0, 1}, Strategy("ParameterServer")),
              ElementsAre(HasSubstr("spec.pipeline[0].shuffle.seed: under strategy ParameterServer")));
  EXPECT_THAT(range(R"([{"batch": {"size": 8}}])", {3, 0, 1}),
              ElementsAre(HasSubstr("a global batch of 8 is cut for 3 replicas in sync")));
  EXPECT_THAT(
      files(R"([{"take": {"count": 5}}, {"batch": {"size": 8}}])", {2, 0, 1}),
      ElementsAre(HasSubstr("spec.pipeline[0].take: under policy File it acts on the records of each of the 2")));
  EXPECT_THAT(files(R"([{"batch": {"size": 8, "dropRemainder": true}}])", {2, 0, 1}),
              ElementsAre(HasSubstr("spec.pipeline[0].batch.dropRemainder: under policy File")));
  EXPECT_THAT(files(R"([{"filter": {"expression": "x > 1"}}, {"batch": {"size": 8}}])", {2, 0, 1}),
              ElementsAre(HasSubstr("spec.pipeline[0].filter: under policy File each worker filters its own files")));
  const auto sequences = [](const std::string& pipeline, const Topology& topology) {
    return WarningsOf(
        R"({"source": {"files": {"paths": ["a"]}}, "features": [{"name": "x", "shape": [-1]}], "pipeline": )" +
            pipeline + "}",
        topology);
  };
  EXPECT_THAT(sequences(R"([{"pack": {"length": 9}}, {"batch": {"size": 8}}])", {2, 0, 1}),
              ElementsAre(HasSubstr("spec.pipeline[0].pack: under policy File each worker packs its own files")));
  EXPECT_THAT(sequences(R"([{"bucketBatch": {"boundaries": [9], "sizes": [8, 4]}}])", {2, 0, 1}),
              ElementsAre(HasSubstr("spec.pipeline[0].bucketBatch: under policy File each worker buckets its own")));
  EXPECT_THAT(sequences(R"([{"bucketBatch": {"boundaries": [9], "sizes": [8, 3]}}])", {1, 0, 2}),
              ElementsAre(HasSubstr("a global batch of 3 is cut for 2 replicas in sync")));
  EXPECT_THAT(files(R"([{"take": {"count": 5}}, {"batch": {"size": 8}}])", {1, 0, 2}), IsEmpty());
}

TEST(Warnings, SayWhereAClaimHidesTheNumberOfGpus) {
  using testing::ElementsAre;
  using testing::IsEmpty;
  const auto with = [](const std::string& distribution, const std::string& delivery) {
    return WarningsOf(R"({"source": {"files": {"paths": ["a"]}}, "features": [{"name": "x"}],
                          "pipeline": [{"batch": {"size": 8}}], "distribution": )" +
                          distribution + R"(, "delivery": )" + delivery + "}",
                      {});
  };
  const auto warns = ElementsAre(HasSubstr("spec.distribution.replicasPerWorker: is left out"));
  EXPECT_THAT(with("{}", R"({"memory": "Device"})"), warns);
  EXPECT_THAT(with("{}", R"({"resourceClaim": "gpu"})"), warns);
  EXPECT_THAT(with(R"({"replicasPerWorker": 1})", R"({"memory": "Device"})"), IsEmpty());
  EXPECT_THAT(with(R"({"replicasPerWorker": 1})", R"({"resourceClaim": "gpu"})"), IsEmpty());
  EXPECT_THAT(with("{}", "{}"), IsEmpty());
}

}  // namespace
}  // namespace headrace
