#include "sidecar/transform/cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "sidecar/transform/batch.h"
#include "tests/sidecar/files.h"
#include "tests/sidecar/pipelines.h"
#include "tests/sidecar/streams.h"

namespace headrace::side {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// 0, 1, 2, 3, and counts how many passes have begun.
class Counted : public Dataset<Record> {
 public:
  explicit Counted(int* passes) : passes_(*passes) {}
  std::unique_ptr<Stream<Record>> Iterate(Pass pass) const override {
    ++passes_;
    return numbers_->Iterate(pass);
  }

 private:
  int& passes_;
  const DatasetPtr<Record> numbers_ = Numbers(4);
};

TEST(Cache, IsFilledByTheFirstWholePass) {
  int passes = 0;
  const CacheDataset<Record> cache(std::make_unique<Counted>(&passes), Cache{}, "here");
  {
    const auto stream = cache.Iterate({});
    Record record;
    ASSERT_TRUE(*ReadOne(*stream, record));
  }
  EXPECT_THAT(Values(cache), ElementsAre(0, 1, 2, 3)) << "what a pass leaves that ended early does not count";
  EXPECT_EQ(passes, 2);
  for (uint64_t epoch = 1; epoch < 4; ++epoch) {
    EXPECT_THAT(Values(cache, {epoch}), ElementsAre(0, 1, 2, 3));
  }
  EXPECT_EQ(passes, 2);
  EXPECT_THAT(Values(cache, {0, 7}), ElementsAre(0, 1, 2, 3)) << "another run's seed may mean another order";
  EXPECT_EQ(passes, 3);
}

TEST(Cache, HoldsBatches) {
  int passes = 0;
  const CacheDataset<Batch> cache(MakeBatch(std::make_unique<Counted>(&passes), 3, false), Cache{}, "here");
  for (int pass = 0; pass < 2; ++pass) {
    const auto batches = ReadAll(cache);
    ASSERT_EQ(batches.size(), 2u);
    EXPECT_THAT(Values(batches[0].records), ElementsAre(0, 1, 2));
    EXPECT_EQ(batches[1].rows, 1);
  }
  EXPECT_EQ(passes, 1);
}

TEST(Cache, RefusesToHoldMoreThanItsBound) {
  const CacheDataset<Record> cache(Numbers(4), Cache{3 * sizeof(Record)}, "spec.pipeline[1].cache");
  const auto stream = cache.Iterate({});
  std::vector<Record> out(3);
  ASSERT_TRUE(stream->Read(out).ok());
  const auto more = stream->Read(out);
  EXPECT_EQ(more.status().code(), Code::kExhausted);
  EXPECT_THAT(more.status().message(),
              HasSubstr("spec.pipeline[1].cache.maxBytes: " + std::to_string(3 * sizeof(Record)) +
                        " bytes do not hold more than the first 3 elements; raise it"));
}

TEST(Cache, NeedsItsFilesNoMore) {
  Folder folder;
  std::string file;
  for (int64_t i = 0; i < 5000; ++i) {  // several of the cache's chunks
    file += TFRecordOf(ExampleOf({{"x", Int64List({i})}, {"more", BytesList(std::string(100, 'm'))}}));
  }
  folder.Write("a.tfrecord", file);
  PipelineRun run(R"({"source": {"files": {"paths": ["a.tfrecord"]}}, "features": [{"name": "x", "dtype": "int64"}],
      "pipeline": [{"cache": {}}, {"batch": {"size": 100}}]})",
                  {}, folder.path());
  const auto first = run.Values<int64_t>();
  ASSERT_EQ(first.size(), 5000u);
  for (size_t i = 0; i < first.size(); ++i) ASSERT_EQ(first[i], static_cast<int64_t>(i));
  std::filesystem::remove(folder.path() + "/a.tfrecord");
  EXPECT_EQ(run.Values<int64_t>(0, 1), first);
  EXPECT_TRUE(run.status().ok());
}

TEST(Cache, FreezesAShuffleBeforeItInTheOrderOfEpochZero) {
  const std::string shuffled = R"([{"shuffle": {"bufferSize": 50}}, CACHE {"batch": {"size": 5}}])";
  const auto spec = [&](const std::string& cache) {
    std::string text = shuffled;
    return RangeSpec(50, text.replace(text.find("CACHE"), 5, cache));
  };
  PipelineRun run(spec(R"({"cache": {}},)"));
  const auto first = run.Values<int64_t>(0, 0);
  EXPECT_EQ(run.Values<int64_t>(0, 1), first);
  PipelineRun restarted(spec(R"({"cache": {}},)"));
  EXPECT_EQ(restarted.Values<int64_t>(0, 3), first) << "whichever epoch a loader begins with";
  PipelineRun after(RangeSpec(50, R"([{"cache": {}}, {"shuffle": {"bufferSize": 50}}, {"batch": {"size": 5}}])"));
  EXPECT_NE(after.Values<int64_t>(0, 0), after.Values<int64_t>(0, 1));
}

}  // namespace
}  // namespace headrace::side
