// Starting at step s of an epoch gives what reading up to it would: for every pipeline, worker and step.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sidecar/loader/pipeline.h"
#include "tests/sidecar/files.h"
#include "tests/sidecar/pipelines.h"

namespace headrace::side {
namespace {

using nlohmann::json;

// One delivery as text: where it goes, and its bytes.
std::string Describe(FeedEpoch& epoch, FeedEpoch::Delivery delivery, uint64_t max_bytes) {
  std::vector<uint8_t> slot(max_bytes + 64);
  FeedEpoch::Place place{slot.data(), slot.size(), {}};
  EXPECT_TRUE(WriteWhole(epoch, &delivery, &place).ok());
  std::string text =
      std::to_string(delivery.step) + "/" + std::to_string(delivery.replica) + (delivery.spare ? " spare:" : ":");
  for (const ring::ComponentExtent& extent : place.extents) {
    for (uint64_t i = 0; i < extent.bytes; i += 8) {
      int64_t value;
      std::memcpy(&value, &slot[extent.offset + i], sizeof value);
      text += " " + std::to_string(value);
    }
  }
  return text;
}

std::vector<std::string> ReadFrom(Pipeline& pipeline, Signal& signal, uint64_t step, size_t most) {
  auto epoch = pipeline.Start({3, step, 99});
  EXPECT_TRUE(epoch.ok()) << epoch.status().ToString();
  std::vector<std::string> all;
  FeedEpoch::Delivery delivery;
  while (epoch.ok() && all.size() < most) {
    const Result<bool> more = AwaitNext(**epoch, signal, &delivery);
    EXPECT_TRUE(more.ok()) << more.status().ToString();
    if (!more.ok() || !*more) break;
    all.push_back(Describe(**epoch, delivery, pipeline.max_bytes()));
  }
  return all;
}

class Seek : public testing::Test {
 protected:
  // `more` is the spec's pipeline and what else there is beside the source.
  void ExpectSeekable(const std::string& source, const std::string& more, int workers, int replicas) {
    constexpr size_t kMost = 120;  // of an endless one
    const std::string spec = R"({"source": )" + source + ", " + more + "}";
    SCOPED_TRACE(spec + " " + std::to_string(workers) + "x" + std::to_string(replicas));
    const auto parsed = ParseInputSpec(json::parse(spec));
    ASSERT_TRUE(parsed.ok()) << parsed.status().ToString();
    for (int worker = 0; worker < workers; ++worker) {
      auto pipeline = Pipeline::Create(CompilePlan(*parsed, "t"), {workers, worker, replicas}, folder_.path(), "run",
                                       "", 1, &signal_);
      ASSERT_TRUE(pipeline.ok()) << pipeline.status().ToString();
      const std::vector<std::string> all = ReadFrom(**pipeline, signal_, 0, kMost);
      const size_t steps = all.size() / static_cast<size_t>(replicas);
      for (size_t step = 0; step <= steps + 1; ++step) {
        const size_t begin = std::min(all.size(), step * static_cast<size_t>(replicas));
        const std::vector<std::string> wanted(all.begin() + static_cast<int64_t>(begin), all.end());
        EXPECT_EQ(ReadFrom(**pipeline, signal_, step, kMost - begin), wanted)
            << "worker " << worker << ", step " << step;
      }
    }
  }

  void WriteFiles() {
    int64_t value = 0;
    for (const int records : {5, 0, 3, 40, 1}) {
      std::string bytes;
      for (int i = 0; i < records; ++i) bytes += TFRecordOf(ExampleOf({{"x", Int64List({value++})}}));
      const std::string name = "file-" + std::to_string(files_++) + ".tfrecord";
      folder_.Write(name, records == 3 ? GzipOf(bytes) : bytes);
    }
  }

  Folder folder_;
  Signal signal_;
  int files_ = 0;
};

constexpr char kRange[] = R"({"range": {"start": 5, "stop": 95, "step": 3}})";
constexpr char kFiles[] = R"({"files": {"paths": ["file-*"]}})";

TEST_F(Seek, Numbers) {
  for (const char* pipeline : {
           R"([{"batch": {"size": 4}}])",
           R"([{"batch": {"size": 4, "dropRemainder": true}}])",
           R"([{"skip": {"count": 3}}, {"take": {"count": 11}}, {"batch": {"size": 3}}])",
           R"([{"take": {"count": 7}}, {"repeat": {"count": 5}}, {"batch": {"size": 4}}])",
           R"([{"take": {"count": 7}}, {"batch": {"size": 4}}, {"repeat": {"count": 5}}])",
           R"([{"take": {"count": 7}}, {"repeat": {}}, {"batch": {"size": 4}}])",
           R"([{"shard": {"numShards": 3, "index": 1}}, {"batch": {"size": 2}}])",
           R"([{"enumerate": {"start": 100}}, {"batch": {"size": 4}}])",
           R"([{"filter": {"expression": "value % 2 == 0"}}, {"repeat": {"count": 3}}, {"batch": {"size": 4}}])",
           R"([{"shuffle": {"bufferSize": 50}}, {"take": {"count": 9}}, {"filter": {"expression": "value % 2 == 0"}},
               {"repeat": {"count": 5}}, {"batch": {"size": 4}}])",
           R"([{"shuffle": {"bufferSize": 9}}, {"cache": {}}, {"repeat": {"count": 3}}, {"batch": {"size": 4}}])",
           R"([{"map": {"cast": "float32"}}, {"batch": {"size": 4}}, {"cache": {}}, {"map": {"scale": 2}}])",
           R"([{"shuffle": {"bufferSize": 8, "seed": 1}}, {"batch": {"size": 4}}])",
           R"([{"shuffle": {"bufferSize": 1000}}, {"batch": {"size": 4}}])",
           R"([{"shuffle": {"bufferSize": 5}}, {"repeat": {"count": 3}}, {"batch": {"size": 4}}])",
           R"([{"repeat": {"count": 3}}, {"shuffle": {"bufferSize": 50}}, {"batch": {"size": 4}}])",
           R"([{"batch": {"size": 4}}, {"shuffle": {"bufferSize": 3}}])",
           R"([{"batch": {"size": 3}}, {"batch": {"size": 2}}])",
           R"([{"take": {"count": 0}}, {"repeat": {}}, {"batch": {"size": 4}}])",
       }) {
    for (const auto& [workers, replicas] : {std::pair(1, 1), std::pair(1, 3), std::pair(2, 2)}) {
      for (const char* policy : {"Data", "Off"}) {
        ExpectSeekable(
            kRange,
            R"("pipeline": )" + std::string(pipeline) + R"(, "distribution": {"autoShardPolicy": ")" + policy + R"("})",
            workers, replicas);
      }
    }
  }
}

TEST_F(Seek, Files) {
  WriteFiles();
  const std::string features = R"("features": [{"name": "x", "dtype": "int64", "shape": []}], )";
  for (const char* pipeline : {
           R"([{"batch": {"size": 4}}])",
           R"([{"interleave": {"cycleLength": 2, "blockLength": 3}}, {"batch": {"size": 4}}])",
           R"([{"shuffle": {"bufferSize": 8}}, {"repeat": {"count": 2}}, {"batch": {"size": 4}}])",
       }) {
    for (const auto& [workers, replicas] : {std::pair(1, 1), std::pair(2, 2)}) {
      for (const char* distribution : {R"({"autoShardPolicy": "Data"})", R"({"autoShardPolicy": "File"})",
                                       R"({"autoShardPolicy": "Off", "rebatch": "Continuous"})"}) {
        ExpectSeekable(kFiles,
                       features + R"("pipeline": )" + std::string(pipeline) + R"(, "distribution": )" + distribution,
                       workers, replicas);
      }
    }
  }
}

// Repetitions of a shuffled list may give a worker other files, and so another number of records.
TEST_F(Seek, ShuffledFiles) {
  WriteFiles();
  const std::string more =
      R"("features": [{"name": "x", "dtype": "int64", "shape": []}], "pipeline": [{"repeat": {"count": 6}},
         {"batch": {"size": 4}}], "distribution": {"autoShardPolicy": "File"})";
  for (const char* list :
       {R"([{"shuffle": {"bufferSize": 9}}])", R"([{"shuffle": {"bufferSize": 9}}, {"take": {"count": 3}}])"}) {
    for (const auto& [workers, replicas] : {std::pair(1, 1), std::pair(2, 2)}) {
      ExpectSeekable(R"({"files": {"paths": ["file-*"], "pipeline": )" + std::string(list) + "}}", more, workers,
                     replicas);
    }
  }
}

TEST_F(Seek, SequencesOfVaryingLength) {
  std::string bytes;
  for (int64_t i = 0; i < 60; ++i) {
    bytes += TFRecordOf(ExampleOf({{"x", Int64List(std::vector<int64_t>(static_cast<size_t>(i * 7 % 11), i))}}));
  }
  folder_.Write("file-0.tfrecord", bytes);
  const std::string features = R"("features": [{"name": "x", "dtype": "int64", "shape": [-1]}], )";
  for (
      const char* pipeline : {
          R"([{"bucketBatch": {"boundaries": [3, 6], "sizes": [6, 4, 2]}}])",
          R"([{"shuffle": {"bufferSize": 8}}, {"bucketBatch": {"boundaries": [3, 6], "size": 4, "dropRemainder": true}},
               {"repeat": {"count": 3}}])",
          R"([{"shuffle": {"bufferSize": 40}}, {"take": {"count": 20}}, {"bucketBatch": {"boundaries": [5], "size": 4}},
               {"repeat": {"count": 4}}])",
          R"([{"pack": {"length": 16}}, {"batch": {"size": 2}}])",
          R"([{"shuffle": {"bufferSize": 40}}, {"pack": {"length": 11}}, {"repeat": {"count": 4}},
               {"batch": {"size": 2}}])",
          R"([{"shuffle": {"bufferSize": 8}}, {"repeat": {"count": 2}}, {"pack": {"length": 6, "split": true}},
               {"shuffle": {"bufferSize": 3}}, {"batch": {"size": 4}}])",
      }) {
    for (const auto& [workers, replicas] : {std::pair(1, 1), std::pair(2, 2)}) {
      ExpectSeekable(
          kFiles,
          features + R"("pipeline": )" + std::string(pipeline) + R"(, "distribution": {"autoShardPolicy": "Data"})",
          workers, replicas);
    }
  }
}

}  // namespace
}  // namespace headrace::side
