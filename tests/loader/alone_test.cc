// The loader of the parts that need a GPU alone (cmake/HeadraceParts.cmake) gives what the whole loader gives, and says
// what it cannot read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/loader/run.h"
#include "tests/sidecar/examples.h"

namespace headrace::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kLoaders[][30] = {"headrace-loader", "headrace-loader-alone"};
constexpr char kLabel[] = R"("features": [{"name": "label", "dtype": "int64"}], "pipeline": [{"batch": {"size": 4}}]})";

class AloneTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(files_.path() + "/" + name, std::ios::binary) << bytes;
    return files_.path() + "/" + name;
  }
  static std::string Files(const std::string& format, const std::string& path, const std::string& rest) {
    return R"({"source": {"files": {"format": ")" + format + R"(", "paths": [")" + path + R"("]}}, )" + rest;
  }
  // What its trainer is told.
  static std::string ErrorOf(const std::string& spec, int workers = 1) {
    const LoaderRun run(spec, workers, 1, "run", {}, Namespaces::kShared, "headrace-loader-alone");
    Reader reader(run.directory(0));
    reader.Start();
    reader.Rest();
    return reader.error();
  }

  const Folder files_;
};

TEST_F(AloneTest, ReadsWhatNeedsNoLibrary) {
  std::string records;
  std::string lines = "label\n";
  std::string numbers;
  std::vector<int64_t> expected;
  for (int64_t i = 0; i < 11; ++i) {
    records += side::TFRecordOf(side::ExampleOf({{"label", side::Int64List({i})}}));
    lines += std::to_string(i) + "\n";
    numbers += side::LittleEndian(static_cast<uint64_t>(i), 8);
    expected.push_back(i);
  }
  for (const std::string& spec :
       {Files("TFRecord", Write("a.tfrecord", records), kLabel), Files("CSV", Write("a.csv", lines), kLabel),
        Files("FixedLength", Write("a.bin", numbers), kLabel)}) {
    for (const char* const loader : kLoaders) {
      const LoaderRun run(spec, 1, 1, "run", {}, Namespaces::kShared, loader);
      Reader reader(run.directory(0));
      reader.Start();
      std::vector<int64_t> read;
      for (const Reader::Step& step : reader.Rest()) read.insert(read.end(), step[0].begin(), step[0].end());
      EXPECT_EQ(reader.error(), "") << loader << ": " << spec;
      EXPECT_EQ(read, expected) << loader << ": " << spec;
    }
  }
}

TEST_F(AloneTest, FindsADamagedRecord) {
  std::string record = side::TFRecordOf(side::ExampleOf({{"label", side::Int64List({1})}}));
  record[record.size() - 6] ^= 1;
  EXPECT_THAT(ErrorOf(Files("TFRecord", Write("a.tfrecord", record), kLabel)), HasSubstr("checksum"));
}

TEST_F(AloneTest, SaysWhatItDoesNotRead) {
  EXPECT_THAT(ErrorOf(Files("JSONLines", Write("a.jsonl", "{\"label\": 1}\n"), kLabel)),
              AllOf(HasSubstr("does not decode JSON"), HasSubstr("use TFRecord")));
  EXPECT_THAT(ErrorOf(Files("TFRecord", "s3://bucket/a.tfrecord", kLabel)),
              AllOf(HasSubstr("spec.source.files.paths[0]"), HasSubstr("s3://bucket/a.tfrecord"),
                    HasSubstr("name files of a volume")));
  const std::string gzip = R"({"source": {"files": {"format": "TFRecord", "compression": "Gzip", "paths": [")" +
                           Write("a.gz", "\x1f\x8b\x08") + R"("]}}, )" + kLabel;
  EXPECT_THAT(ErrorOf(gzip), HasSubstr("no compression that is read"));
  const std::string example = side::TFRecordOf(side::ExampleOf({{"image", side::BytesList("\x89PNG")}}));
  EXPECT_THAT(ErrorOf(Files("TFRecord", Write("a.images", example),
                            R"("features": [{"name": "image", "dtype": "string"}],
                               "pipeline": [{"map": {"feature": "image", "decodeImage": {"shape": [1, 1, 3]}}},
                                            {"batch": {"size": 1}}]})")),
              AllOf(HasSubstr("neither JPEG nor PNG"), HasSubstr("use images that are stored as their pixels")));
}

TEST_F(AloneTest, RunsOneWorkerAndSaysSoToSeveral) {
  EXPECT_THAT(ErrorOf(R"({"source": {"range": {"stop": 10}}, "pipeline": [{"batch": {"size": 4}}]})", 2),
              AllOf(HasSubstr("no agreement between loaders"), HasSubstr("run one worker")));
}

}  // namespace
}  // namespace headrace::testing
