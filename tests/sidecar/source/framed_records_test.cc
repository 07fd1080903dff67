// Records that are found by an index: who reads which bytes, and that they are the same records. Expected values:
// arithmetic.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>

#include "sidecar/source/index_files.h"
#include "sidecar/source/record_index.h"
#include "sidecar/source/stored_block.h"
#include "tests/sidecar/files.h"
#include "tests/sidecar/pipelines.h"
#include "tests/sidecar/tars.h"

namespace headrace::side {
namespace {

using testing::HasSubstr;

constexpr char kData[] = R"(, "distribution": {"autoShardPolicy": "Data"})";

std::vector<int64_t> Counting(int64_t from, int64_t until) {
  std::vector<int64_t> values(static_cast<size_t>(until - from));
  std::iota(values.begin(), values.end(), from);
  return values;
}

// How one format writes the number x as a record.
struct Writer {
  const char* format;
  std::string begin;  // of each file
  std::string (*record)(int64_t x);
  size_t cut = 0;  // bytes that may be left out at a file's end: its line end
};

std::string TFRecord(int64_t x) { return TFRecordOf(ExampleOf({{"x", Int64List({x})}})); }
std::string CsvLine(int64_t x) { return "\"a\nb\"," + std::to_string(x) + "\r\n"; }
std::string JsonLine(int64_t x) {
  return (x % 5 == 0 ? "\n" : "") + std::string("{\"x\": ") + std::to_string(x) + "}\n";
}
// Files of no sample, and archives one after another, between them.
std::string Sample(int64_t x) {
  const std::string key = std::to_string(x);
  return TarFile(key + ".x", key) + TarFile(key + ".y", "") +
         (x % 5 == 0 ? TarFile("README", "of none") + TarEnd() : "");
}

class FramedRecords : public testing::TestWithParam<Writer> {
 protected:
  std::string FileOf(int64_t from, int64_t until) const {
    std::string bytes = GetParam().begin;
    for (int64_t x = from; x < until; ++x) bytes += GetParam().record(x);
    return bytes.substr(0, bytes.size() - GetParam().cut);
  }
  std::string Spec(const std::string& pipeline, const std::string& rest = kData) const {
    return R"({"source": {"files": {"paths": ["f*"], "format": ")" + std::string(GetParam().format) +
           R"("}}, "features": [{"name": "x", "dtype": "int64"}], "pipeline": )" + pipeline + rest + "}";
  }
  PipelineRun Run(const std::string& pipeline, Topology topology = {}, const std::string& rest = kData) const {
    return PipelineRun(Spec(pipeline, rest), topology, folder_.path());
  }
  // Keeps indexes beside the files; how many were made.
  int Index() const {
    int made = 0;
    const Status status = IndexFiles(*ParseInputSpec(nlohmann::json::parse(Spec("[]"))), folder_.path(),
                                     [&](const IndexedFile& file) { made += file.made ? 1 : 0; });
    EXPECT_TRUE(status.ok()) << status.message();
    return made;
  }
  // What four workers deliver in an epoch, and how many bytes they read for it.
  struct Share {
    std::vector<int64_t> values;
    uint64_t bytes = 0;
  };
  using Workers = std::vector<std::unique_ptr<PipelineRun>>;
  static Share OfFourWorkers(uint64_t epoch, const Workers& workers) {
    Share share;
    for (const auto& worker : workers) {
      const uint64_t before = worker->pipeline().bytes_read();
      for (const int64_t x : worker->Values<int64_t>(0, epoch)) share.values.push_back(x);
      EXPECT_TRUE(worker->status().ok()) << worker->status().message();
      share.bytes += worker->pipeline().bytes_read() - before;
    }
    std::sort(share.values.begin(), share.values.end());
    return share;
  }
  Workers FourWorkers(const std::string& pipeline) const {
    Workers workers;
    for (int64_t worker = 0; worker < 4; ++worker)
      workers.emplace_back(new PipelineRun(Spec(pipeline), {4, worker, 1}, folder_.path()));
    return workers;
  }
  Folder folder_;
};

TEST_P(FramedRecords, AreReadByThoseWhoDeliverThemOnceTheFileWasRead) {
  const std::string files[] = {FileOf(0, 30000), FileOf(30000, 30001), FileOf(30001, 45000)};
  uint64_t size = 0;
  for (int i = 0; i < 3; ++i) {
    folder_.Write("f" + std::to_string(i), files[i]);
    size += files[i].size();
  }
  const Workers workers = FourWorkers(R"([{"batch": {"size": 64}}])");
  EXPECT_EQ(OfFourWorkers(0, workers).values, Counting(0, 45000));
  const Share later = OfFourWorkers(1, workers);
  EXPECT_EQ(later.values, Counting(0, 45000));
  // Each worker reads what is before the first record of each file: a header, or an empty line.
  EXPECT_LE(later.bytes, size + 4 * 3 * (GetParam().begin.size() + 1));
  EXPECT_GE(later.bytes, size - 3 * GetParam().begin.size());
}

TEST_P(FramedRecords, AreReadByThoseWhoDeliverThemFromTheBeginWithAnIndexBeside) {
  const std::string file = FileOf(0, 40000);
  folder_.Write("f", file);
  EXPECT_EQ(Index(), 1);
  EXPECT_EQ(Index(), 0) << "it is there";
  const Workers workers = FourWorkers(R"([{"shuffle": {"bufferSize": 1000, "seed": 5}}, {"batch": {"size": 64}}])");
  const Share share = OfFourWorkers(0, workers);
  EXPECT_EQ(share.values, Counting(0, 40000));
  EXPECT_LE(static_cast<double>(share.bytes), static_cast<double>(file.size()) * 1.05);
}

// A batch may hold records that were read through, and some that are read by number.
TEST_P(FramedRecords, OfBothKindsAreDecodedTogether) {
  folder_.Write("f", FileOf(0, 1000));
  const std::string pipeline =
      R"([{"repeat": {"count": 3}}, {"shuffle": {"bufferSize": 300, "seed": 1}}, {"batch": {"size": 64}}])";
  std::vector<int64_t> all;
  for (int64_t worker = 0; worker < 2; ++worker) {
    auto run = Run(pipeline, {2, worker, 1});
    for (const int64_t x : run.Values<int64_t>()) all.push_back(x);
    EXPECT_TRUE(run.status().ok()) << run.status().message();
  }
  std::sort(all.begin(), all.end());
  ASSERT_EQ(all.size(), 3000u);
  for (size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], static_cast<int64_t>(i / 3));
}

TEST_P(FramedRecords, StandInOneRandomOrder) {
  folder_.Write("f0", FileOf(0, 700));
  folder_.Write("f1", FileOf(700, 1000));
  auto run = Run(R"([{"shuffle": {"scope": "Global", "seed": 3}}, {"batch": {"size": 32}}])", {}, "");
  std::vector<int64_t> first = run.Values<int64_t>();
  EXPECT_TRUE(run.status().ok()) << run.status().message();
  EXPECT_FALSE(std::is_sorted(first.begin(), first.end()));
  EXPECT_NE(run.Values<int64_t>(0, 1), first);
  // The first batch holds records of the whole data set.
  EXPECT_GT(*std::max_element(first.begin(), first.begin() + 32), 700);
  EXPECT_LT(*std::min_element(first.begin(), first.begin() + 32), 300);
  std::sort(first.begin(), first.end());
  EXPECT_EQ(first, Counting(0, 1000));
}

TEST_P(FramedRecords, OfCompressedFilesStandInNoRandomOrder) {
  folder_.Write("f0", GzipOf(FileOf(0, 100)));
  auto run = Run(R"([{"shuffle": {"scope": "Global"}}, {"batch": {"size": 32}}])", {}, "");
  run.Epoch();
  EXPECT_THAT(run.status().message(), HasSubstr("/f0: where its records lie cannot be known: it is compressed"));
  const Workers workers = FourWorkers(R"([{"batch": {"size": 8}}])");
  for (uint64_t epoch = 0; epoch < 2; ++epoch) EXPECT_EQ(OfFourWorkers(epoch, workers).values, Counting(0, 100));
}

// An index is no substitute for looking: a file that has changed is noticed, and nothing else is delivered for it.
TEST_P(FramedRecords, OfAFileThatChangesAreAnError) {
  const std::string file = FileOf(0, 2000);
  const std::string path = folder_.Write("f", file);
  auto run = Run(R"([{"batch": {"size": 8}}])", {2, 0, 1});
  EXPECT_EQ(run.Values<int64_t>().size(), 1000u);
  folder_.Write("f", file.substr(0, file.size() / 2));
  run.Epoch(1);
  EXPECT_EQ(run.status().code(), Code::kCorrupt);
  EXPECT_THAT(run.status().message(), HasSubstr(path + ": "));
}

// 6,000 examples of some 950 bytes, x counting from `from`: a file that is worth reading by number.
std::string LongExamples(int64_t from) {
  std::string bytes;
  for (int64_t x = from; x < from + 6000; ++x) {
    bytes += TFRecordOf(ExampleOf({{"x", Int64List({x})}, {"text", BytesList({std::string(900 + x % 90, 't')})}}));
  }
  return bytes;
}

// In order, too, a file that was read through is read by number from then on; unless it is another one by now.
TEST(FramedRecordsInOrder, AreTheSameInEachEpoch) {
  const Folder folder;
  folder.Write("f0", LongExamples(0));
  folder.Write("f1", LongExamples(6000));
  PipelineRun run(R"({"source": {"files": {"paths": ["f*"]}}, "features": [{"name": "x", "dtype": "int64"}],
                      "pipeline": [{"batch": {"size": 100}}]})",
                  {}, folder.path());
  const uint64_t size = std::filesystem::file_size(folder.path() + "/f0") * 2;
  for (uint64_t epoch = 0; epoch < 3; ++epoch) {
    const uint64_t before = run.pipeline().bytes_read();
    EXPECT_EQ(run.Values<int64_t>(0, epoch), Counting(0, 12000));
    EXPECT_NEAR(static_cast<double>(run.pipeline().bytes_read() - before), static_cast<double>(size), 1e5);
  }
  folder.Write("f0", LongExamples(100000));
  EXPECT_EQ(run.Values<int64_t>(0, 3).front(), 100000);
  EXPECT_TRUE(run.status().ok()) << run.status().message();
}

bool IsMapped(const std::string& path) {
  std::ifstream maps("/proc/self/maps");
  const std::string all((std::istreambuf_iterator<char>(maps)), {});
  return all.find(path) != std::string::npos;
}

// Once a file was found in memory often enough its records are decoded where they lie there, and are what they were;
// when the file becomes shorter meanwhile, nothing is delivered for what is gone.
TEST(FramedRecordsInOrder, AreDecodedWhereTheyLieInMemory) {
  const Folder folder;
  const std::string bytes = LongExamples(0);
  const std::string path = folder.Write("f", bytes);
  for (const bool with_text : {false, true}) {  // a row of which refers to where it lies
    folder.Write("f", bytes);
    PipelineRun run(R"({"source": {"files": {"paths": ["f"]}}, "features": [{"name": "x", "dtype": "int64"})" +
                        std::string(with_text ? R"(, {"name": "text", "dtype": "string"})" : "") +
                        R"(], "pipeline": [{"batch": {"size": 4}}]})",
                    {}, folder.path());
    for (uint64_t epoch = 0; epoch < 2; ++epoch) EXPECT_EQ(run.Values<int64_t>(0, epoch), Counting(0, 6000));
    ASSERT_TRUE(IsMapped(path));
    for (const Delivered& delivered : run.Epoch(2)) {
      const auto x = delivered.Values<int64_t>();
      EXPECT_EQ(x, Counting(delivered.step * 4, delivered.step * 4 + 4));
      for (size_t i = 0; with_text && i < x.size(); ++i) {
        EXPECT_EQ(delivered.splits[1][i + 1] - delivered.splits[1][i], 900 + x[i] % 90);
      }
    }
    constexpr size_t kPage = 4096;
    const size_t left = bytes.size() / 2 / kPage * kPage;
    run.on_delivery = [&](size_t deliveries) {
      if (deliveries == 10) std::filesystem::resize_file(path, left);
    };
    const size_t had = run.Epoch(3).size();
    EXPECT_GE(had, 10u);
    EXPECT_LE(had * 4, 3010u);
    EXPECT_EQ(run.status().code(), Code::kCorrupt);
    EXPECT_THAT(run.status().message(), HasSubstr("the file ends at byte " + std::to_string(left) +
                                                  ": it has become shorter since the loader started"));
  }
}

// They come in the order that they had when they were read through; a shuffle's are always read through.
TEST(FramedRecordsMixed, AreDecodedWhereTheyLieInMemoryUnlessTheyAreShuffled) {
  const Folder folder;
  const std::string bytes = LongExamples(0);
  const std::string path = folder.Write("f", bytes);
  folder.Write("g", LongExamples(6000));
  const auto spec = [](const std::string& mixes) {
    return R"({"source": {"files": {"paths": ["f", "g"]}}, "features": [{"name": "x", "dtype": "int64"}],
               "pipeline": [)" +
           mixes + R"(, {"batch": {"size": 32}}]})";
  };
  const std::string shuffle = spec(R"({"shuffle": {"bufferSize": 500, "seed": 1}})");
  const std::string interleave = spec(R"({"interleave": {"cycleLength": 2}})");
  for (const bool shuffles : {true, false}) {
    PipelineRun run(shuffles ? shuffle : interleave, {}, folder.path());
    for (uint64_t epoch = 0; epoch < 3; ++epoch) {
      const std::vector<int64_t> values = run.Values<int64_t>(0, epoch);
      EXPECT_EQ(IsMapped(path), !shuffles && epoch > 0);
      PipelineRun read_through(shuffles ? shuffle : interleave, {}, folder.path());
      EXPECT_EQ(values, read_through.Values<int64_t>(0, epoch));
      EXPECT_TRUE(run.status().ok()) << run.status().message();
    }
  }
  PipelineRun run(interleave, {}, folder.path());
  for (uint64_t epoch = 0; epoch < 3; ++epoch) run.Epoch(epoch);
  // In the middle of an epoch, so that the file is not opened anew: a byte of a record that is still to come.
  const size_t middle = bytes.size() / 2;
  run.on_delivery = [&](size_t deliveries) {
    if (deliveries != 10) return;
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(middle)).put(static_cast<char>(bytes[middle] ^ 1));
  };
  EXPECT_GE(run.Epoch(3).size(), 10u);
  EXPECT_EQ(run.status().code(), Code::kCorrupt);
  EXPECT_THAT(run.status().message(), HasSubstr(path + ": record at byte "));
}

TEST(FramedRecordsMixed, AreReadThroughAgainIfTheyAreSmall) {
  const Folder folder;
  std::string bytes;
  while (bytes.size() < 5 << 20) bytes += TFRecordOf(std::string(100, 'r'));
  for (const bool mixed : {false, true}) {
    SourceContext context;
    context.format = &FormatOf(FileFormat::kTFRecord);
    context.by_number = SourceContext::ByNumber::kInMemory;
    context.mixed = mixed;
    context.files = FileTable({folder.Write("f", bytes)});
    const auto records = OpenRecords(*context.format, context, 0);
    ASSERT_TRUE(records.ok());
    ASSERT_TRUE((*records)->PassOver(UINT64_MAX).ok());
    EXPECT_EQ(*context.StoredInMemory(0) == nullptr, mixed);
  }
}

TEST(FramedRecordsInOrder, AreKnownOnceTheirFileWasReadThrough) {
  const Folder folder;
  std::string bytes;
  while (bytes.size() < 5 << 20) bytes += TFRecordOf(std::string(5000, 'r'));
  const std::string path = folder.Write("large", bytes);
  SourceContext context;
  context.format = &FormatOf(FileFormat::kTFRecord);
  context.by_number = SourceContext::ByNumber::kInMemory;
  context.files = FileTable({path, folder.Write("small", bytes.substr(0, 5016))});
  for (uint32_t file = 0; file < 2; ++file) {
    const auto records = OpenRecords(*context.format, context, file);
    ASSERT_TRUE(records.ok());
    EXPECT_EQ(*context.StoredInMemory(file), nullptr) << "it is not read yet";
    ASSERT_TRUE((*records)->PassOver(UINT64_MAX).ok());
  }
  StoredBlock* const known = *context.StoredInMemory(0);
  ASSERT_NE(known, nullptr);
  EXPECT_EQ(known->records(), static_cast<int64_t>(bytes.size() / 5016));
  EXPECT_EQ(*context.StoredInMemory(1), nullptr) << "not worth an open file";
  folder.Write("large", bytes + bytes);
  EXPECT_EQ(*context.StoredInMemory(0), nullptr) << "it is another file now";
}

INSTANTIATE_TEST_SUITE_P(Formats, FramedRecords,
                         testing::Values(Writer{"TFRecord", "", TFRecord, 0},
                                         Writer{"CSV", "\xef\xbb\xbfname,x\r\n", CsvLine, 2},
                                         Writer{"JSONLines", "", JsonLine, 1},
                                         Writer{"WebDataset", TarFile("__meta__", "of none"), Sample, 0}),
                         [](const auto& param) { return std::string(param.param.format); });

// ---- The index itself

class RecordIndexFile : public testing::Test {
 protected:
  std::unique_ptr<StoredFile> Open(const std::string& path) {
    auto file = OpenLocal(path, &bytes_);
    EXPECT_TRUE(file.ok());
    return std::move(*file);
  }
  Folder folder_;
  std::atomic<uint64_t> bytes_{0};
};

TEST_F(RecordIndexFile, IsReadBack) {
  const std::string path = folder_.Write("data.tfrecord", std::string(10000, 'd'));
  EXPECT_EQ(*LoadRecordIndex(*Open(path)), nullptr);
  ASSERT_TRUE(SaveRecordIndex(RecordIndex({7, 20, 9000, 10000}), *Open(path)).ok());
  EXPECT_EQ(RecordIndexPath(path), folder_.path() + "/.headrace/data.tfrecord.index");
  const auto index = LoadRecordIndex(*Open(path));
  ASSERT_TRUE(index.ok()) << index.status().message();
  ASSERT_NE(*index, nullptr);
  EXPECT_EQ((*index)->records(), 3);
  EXPECT_EQ((*index)->begin(0), 7u);
  EXPECT_EQ((*index)->begin(2), 9000u);
  EXPECT_EQ((*index)->begin(3), 10000u);
}

// Of two pods that write to one volume at a time, both may be process 1.
TEST_F(RecordIndexFile, IsNotWrittenIntoTheDraftOfAnotherProcess) {
  const std::string path = folder_.Write("f", std::string(100, 'd'));
  std::filesystem::create_directory(folder_.path() + "/.headrace");
  const std::string draft = RecordIndexPath(path) + "." + std::to_string(getpid());
  std::ofstream(draft) << "theirs";
  ASSERT_TRUE(SaveRecordIndex(RecordIndex({0, 100}), *Open(path)).ok());
  std::string kept;
  std::ifstream(draft) >> kept;
  EXPECT_EQ(kept, "theirs");
}

TEST_F(RecordIndexFile, OfAnotherFileIsNone) {
  std::string data(10000, 'd');
  const std::string path = folder_.Write("f", data);
  ASSERT_TRUE(SaveRecordIndex(RecordIndex({0, 10000}), *Open(path)).ok());
  for (const size_t changed : {size_t{0}, size_t{9999}}) {
    std::string other = data;
    other[changed] = 'e';
    folder_.Write("f", other);
    EXPECT_EQ(*LoadRecordIndex(*Open(path)), nullptr);
  }
  folder_.Write("f", data + data);
  EXPECT_EQ(*LoadRecordIndex(*Open(path)), nullptr);
  folder_.Write("f", data);
  EXPECT_NE(*LoadRecordIndex(*Open(path)), nullptr);
}

TEST_F(RecordIndexFile, ThatIsDamagedIsAnErrorThatNamesIt) {
  const std::string path = folder_.Write("f", std::string(100, 'd'));
  ASSERT_TRUE(SaveRecordIndex(RecordIndex({0, 50, 100}), *Open(path)).ok());
  std::string whole;
  {
    std::ifstream in(RecordIndexPath(path), std::ios::binary);
    whole.assign(std::istreambuf_iterator<char>(in), {});
  }
  ASSERT_EQ(whole.size(), 32u + 3 * 8);
  const auto load = [&](const std::string& bytes) {
    folder_.Write(".headrace/f.index", bytes);
    return LoadRecordIndex(*Open(path)).status();
  };
  EXPECT_TRUE(load(whole).ok());
  for (size_t size = 0; size < whole.size(); ++size) {
    const Status status = load(whole.substr(0, size));
    EXPECT_EQ(status.code(), Code::kCorrupt) << size;
    EXPECT_THAT(status.message(), HasSubstr(RecordIndexPath(path) + ": ")) << size;
  }
  std::string falls = whole;
  falls[40] = 101;  // the second record begins after the file's end
  EXPECT_THAT(load(falls).message(), HasSubstr("its offsets do not rise"));
  std::string many = whole;
  many[31] = 0x7f;
  EXPECT_THAT(load(many).message(), HasSubstr("do not hold"));
  EXPECT_THAT(load("x" + whole.substr(1)).message(), HasSubstr("no index of records"));
}

}  // namespace
}  // namespace headrace::side
