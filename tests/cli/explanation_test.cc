#include "cli/explanation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace headrace::cli {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

LocalInput Input(const std::string& spec) {
  auto parsed = ParseInputSpec(json::parse(spec));
  EXPECT_TRUE(parsed.ok()) << parsed.status().ToString();
  return {"numbers", CompilePlan(*parsed, "numbers"), nullptr, HEADRACE_SOURCE_DIR "/examples/digits"};
}

json Explained(const std::string& spec, int64_t workers, int64_t replicas) {
  const auto explanation = Explain(Input(spec), workers, replicas);
  EXPECT_TRUE(explanation.ok()) << explanation.status().ToString();
  return explanation.ok() ? *explanation : json::object();
}

constexpr char kRange[] = R"({"source": {"range": {"stop": 8}}, "pipeline": [{"batch": {"size": 4}}]})";
constexpr char kFiles[] = R"({"source": {"files": {"paths": ["train-*.tfrecord"]}},
  "features": [{"name": "label", "dtype": "int64", "shape": []}], "pipeline": [{"batch": {"size": 8}}]})";

// The guide: a global batch of 4 over 3 replicas is 2, 2, 0 rows.
TEST(ExplanationTest, PiecesOfABatch) {
  EXPECT_EQ(Explained(kRange, 1, 3)["pieces"], json({2, 2, 0}));
  EXPECT_EQ(Explained(R"({"source": {"range": {"stop": 8}}, "pipeline": [{"batch": {"size": 4}}],
                         "distribution": {"autoShardPolicy": "Off", "rebatch": "Continuous"}})",
                      1, 3)["pieces"],
            json({2, 1, 1}));
}

TEST(ExplanationTest, AutoWithoutFilesIsDataWithAWarning) {
  const json explanation = Explained(kRange, 2, 1);
  EXPECT_EQ(explanation["policy"]["effective"], "Data");
  EXPECT_EQ(explanation["warnings"].size(), 1u);
  EXPECT_EQ(explanation["stepsPerEpoch"], 2);
  EXPECT_TRUE(explanation["shards"].is_null());
}

TEST(ExplanationTest, AFunctionShardsByItself) {
  const json explanation = Explained(R"({"source": {"function": {"command": ["python3", "dataset_fn.py"]}}})", 2, 1);
  EXPECT_EQ(explanation["policy"]["effective"], "Off");
  EXPECT_THAT(explanation["policy"]["why"], HasSubstr("the function shards by itself"));
}

TEST(ExplanationTest, OffMakesAsManyStepsMoreAsThereAreWorkers) {
  EXPECT_EQ(Explained(R"({"source": {"range": {"stop": 8}}, "pipeline": [{"batch": {"size": 4}}],
                         "distribution": {"autoShardPolicy": "Off"}})",
                      2, 1)["stepsPerEpoch"],
            4);
}

TEST(ExplanationTest, FilesAreDealtOut) {
  const json explanation = Explained(kFiles, 2, 2);
  EXPECT_EQ(explanation["policy"]["effective"], "File");
  EXPECT_EQ(explanation["shards"], json::parse(R"([{"worker": 0, "files": ["train-0.tfrecord", "train-2.tfrecord"]},
                                                   {"worker": 1, "files": ["train-1.tfrecord", "train-3.tfrecord"]}])"));
  // 360 + 359 records make 90 batches of 8, each cut into 4 pieces, of which worker 0 hands out 2 a step.
  EXPECT_EQ(explanation["stepsPerEpoch"], 180);
}

TEST(ExplanationTest, MoreWorkersThanFilesIsAnErrorWithBothNumbers) {
  const auto explanation = Explain(Input(kFiles), 5, 1);
  ASSERT_FALSE(explanation.ok());
  EXPECT_THAT(explanation.status().message(), HasSubstr("4 files"));
  EXPECT_THAT(explanation.status().message(), HasSubstr("5 workers"));
}

TEST(ExplanationTest, APathThatMatchesNothingIsAWarning) {
  std::string spec = kFiles;
  spec.replace(spec.find("train-"), 6, "trian-");
  EXPECT_THAT(Explained(spec, 2, 1)["warnings"].dump(), HasSubstr("spec.source.files.paths[0]"));
}

TEST(ExplanationTest, MemoryOfTheRings) {
  // 2 rows of int64 take a page; 16 steps ahead, one in the trainer's hands and one being written, for 2 replicas.
  const json memory = Explained(kRange, 1, 2)["memory"];
  EXPECT_EQ(memory["slotBytes"], 4096);
  EXPECT_EQ(memory["prefetchSteps"], 16);
  EXPECT_EQ(memory["bytesPerWorker"], 147456);
  EXPECT_EQ(memory["shuffleBytes"], 0);
  EXPECT_EQ(Explained(kRange, 2, 64)["memory"]["prefetchSteps"], 16);  // not as many as there are replicas
}

TEST(ExplanationTest, MemoryOfAShuffleOfPackedRowsIsNotKnown) {
  const json memory = Explained(R"({"source": {"files": {"paths": ["train-*.tfrecord"]}},
      "features": [{"name": "x", "dtype": "int64", "shape": [-1]}],
      "pipeline": [{"pack": {"length": 1024}}, {"shuffle": {"bufferSize": 9}}, {"batch": {"size": 2}}]})",
                                1, 1)["memory"];
  EXPECT_EQ(memory["slotBytes"], 2 * 1024 * (8 + 4 + 4)) << "values, ids and positions";
  EXPECT_EQ(memory["shuffleBytes"], json());
}

TEST(ExplanationTest, MemoryCountsTheRoomForStrings) {
  // 4 rows of strings of 8000 bytes together, and 5 row splits.
  const json memory = Explained(R"({"source": {"files": {"paths": ["train-*.tfrecord"]}},
                                    "pipeline": [{"batch": {"size": 4}}], "delivery": {"maxBatchBytes": 8000}})",
                                1, 1)["memory"];
  EXPECT_EQ(memory["slotBytes"], 8192);
}

TEST(ExplanationTest, TextNamesEachPart) {
  const std::string text = PrintExplanation(Explained(kFiles, 2, 2));
  for (const char* part : {"train-*.tfrecord", "batch(dropRemainder false, size 8)", "File (Auto, and",
                           "worker 1: 2 files: train-1.tfrecord, train-3.tfrecord", "2 + 2 + 2 + 2 rows",
                           "label: TensorSpec(shape=(None,), dtype=tf.int64, name=None)"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

}  // namespace
}  // namespace headrace::cli
