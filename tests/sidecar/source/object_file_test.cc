// Files of object stores, from an S3 server to the stream of their bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "sidecar/source/byte_stream.h"
#include "sidecar/source/storage.h"
#include "tests/s3/s3_server.h"
#include "tests/sidecar/pipelines.h"
#include "tests/sidecar/remote/stores.h"

namespace headrace::side {
namespace {

using fakes::Answer;
using fakes::SeenRequest;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// The keys of the test's server, in the environment that loaders read.
class S3 : public testing::Test {
 protected:
  S3() {
    for (const auto& [name, value] : S3Server::Keys()) setenv(name.c_str(), value.c_str(), 1);
  }
  ~S3() override {
    for (const auto& [name, value] : S3Server::Keys()) unsetenv(name.c_str());
  }
};

Result<FileTable> List(const S3Server& server, std::vector<std::string> paths) {
  FilesSource source;
  source.paths = std::move(paths);
  source.object_store.endpoint = server.endpoint();
  return ListFiles(source, "/data");
}

Result<std::string> ReadAll(const FileTable& files, size_t file, std::atomic<uint64_t>* bytes_read,
                            Compression compression = Compression::kAuto) {
  ASSIGN_OR_RETURN(const bool there, files.Has(file));
  if (!there) return NotFound("file " + std::to_string(file));
  ASSIGN_OR_RETURN(const auto stream, OpenByteStream(files, file, compression, bytes_read));
  std::string bytes;
  std::string buffer(100000, '\0');
  while (true) {
    ASSIGN_OR_RETURN(const size_t read, stream->Read(reinterpret_cast<uint8_t*>(buffer.data()), buffer.size()));
    if (read == 0) return bytes;
    bytes.append(buffer, 0, read);
  }
}

std::vector<std::string> Paths(const FileTable& files) {
  std::vector<std::string> paths;
  while (*files.Has(paths.size())) paths.push_back(files.path(paths.size()));
  return paths;
}

// Larger, also when it is compressed, than what tells a compression.
const std::string kCompressed = [] {
  std::string numbers;
  for (int i = 0; i < 1000; ++i) numbers += std::to_string(i * i);
  return numbers;
}();

TEST_F(S3, ListsAndReadsObjects) {
  S3Server server;
  const std::string large = Numbered(30 << 20);
  server.Put("clicks", "train/a b.bin", large);
  server.Put("clicks", "train/b.gz", GzipOf(kCompressed));
  server.Put("clicks", "train/c.empty", "");
  const auto files = List(server, {"s3://clicks/train/*", "s3://clicks/train/a b.bin"});
  ASSERT_TRUE(files.ok()) << files.status().ToString();
  EXPECT_THAT(Paths(*files), ElementsAre("s3://clicks/train/a b.bin", "s3://clicks/train/b.gz",
                                         "s3://clicks/train/c.empty", "s3://clicks/train/a b.bin"));
  EXPECT_EQ(files->remote(0)->size, large.size());
  EXPECT_EQ(files->remote(0)->version, files->remote(3)->version);  // of a listing, and of the object
  EXPECT_EQ(files->remote(2)->size, 0u);

  const size_t listed = server.proxy().requests().size();
  std::atomic<uint64_t> bytes_read{0};
  const std::vector<std::string> contents = {large, kCompressed, "", large};
  for (size_t i = 0; i < contents.size(); ++i) {
    const auto bytes = ReadAll(*files, i, &bytes_read);
    ASSERT_TRUE(bytes.ok()) << bytes.status().ToString();
    EXPECT_TRUE(*bytes == contents[i]) << files->path(i);
  }
  EXPECT_EQ(bytes_read, 2 * large.size() + GzipOf(kCompressed).size());
  // In parts that grow from 256 KiB to 8 MiB: 15.75 MiB are six, and 14.25 two. On a slow machine some are asked for
  // again, and all of them for the path that is listed twice.
  const std::vector<SeenRequest> seen = server.proxy().requests();
  std::set<std::pair<std::string, std::string>> parts;
  for (size_t i = listed; i < seen.size(); ++i) parts.emplace(seen[i].target, seen[i].headers.at("range"));
  EXPECT_EQ(parts.size(), 8u + 1u);
  EXPECT_GE(seen.size() - listed, 2u * 8u + 1u);

  // Anywhere, in one request.
  const size_t before = server.proxy().requests().size();
  auto file = OpenStored(*files, 0, &bytes_read);
  ASSERT_TRUE(file.ok());
  std::string some(1000, '\0');
  const auto read = (*file)->ReadAt(large.size() - 300, {reinterpret_cast<uint8_t*>(some.data()), some.size()});
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(some.substr(0, *read), large.substr(large.size() - 300));
  EXPECT_EQ(server.proxy().requests().size(), before + 1);
}

// Five in a hundred requests fail in one way or another, and the bytes are the same.
TEST_F(S3, ReadsThroughFaults) {
  int faults = 0;
  std::mutex mutex;
  S3Server server([&](int request, const SeenRequest& seen, const std::function<Answer()>& ask) {
    if (request % 20 != 7 || seen.method != "GET") return ask();
    const std::lock_guard lock(mutex);
    const int fault = faults++ % 4;
    if (fault == 0) return Answer{.status = 503, .body = "<Error><Code>SlowDown</Code></Error>"};
    Answer answer = ask();
    if (fault == 1) answer.reset_after = answer.body.size() / 2;
    if (fault == 2) answer.silent = true;
    if (fault == 3) answer.close_after = answer.body.size() / 3;
    return answer;
  });
  // Parts start where the last one ends: of 256 KiB, 512 KiB and the rest.
  const std::string data = Numbered(1100000);
  constexpr size_t kFiles = 40;
  for (size_t i = 0; i < kFiles; ++i) server.Put("faults", "part-" + std::to_string(100 + i), data.substr(i));
  const size_t put = server.proxy().requests().size();
  const auto files = List(server, {"s3://faults/part-*"});
  ASSERT_TRUE(files.ok()) << files.status().ToString();
  std::atomic<uint64_t> bytes_read{0};
  for (size_t i = 0; i < kFiles; ++i) {
    const auto bytes = ReadAll(*files, i, &bytes_read);
    ASSERT_TRUE(bytes.ok()) << bytes.status().ToString();
    EXPECT_TRUE(*bytes == data.substr(i)) << files->path(i);
  }
  EXPECT_GE(faults, 6);
  const std::vector<SeenRequest> requests = server.proxy().requests();
  EXPECT_GE(requests.size() - put, 1 + 3 * kFiles + static_cast<size_t>(faults));
  // No range more often than the policy has it, and few more than once.
  std::map<std::string, int> asked;
  for (size_t i = put; i < requests.size(); ++i) {
    const auto range = requests[i].headers.find("range");
    ++asked[requests[i].target + (range == requests[i].headers.end() ? "" : range->second)];
  }
  for (const auto& [what, times] : asked) EXPECT_LE(times, RetryPolicy().max_attempts) << what;
  EXPECT_LE(requests.size() - put, 2 * 3 * kFiles);
}

TEST_F(S3, SaysWhatIsWrongWithField) {
  S3Server server;
  server.Put("clicks", "train/a.rec", "x");
  const auto error = [&](const std::string& path) { return List(server, {"s3://clicks/train/a.rec", path}).status(); };
  EXPECT_THAT(
      error("s3://clicks/trian/*").ToString(),
      HasSubstr("NotFound: spec.source.files.paths[1]: s3://clicks/trian/* matches no object; bucket s3://clicks/ "
                "holds train/"));
  EXPECT_THAT(error("s3://clicks/train/b.rec").ToString(),
              HasSubstr("NotFound: spec.source.files.paths[1]: s3://clicks/train/b.rec is not there; folder "
                        "s3://clicks/train/ holds a.rec"));
  EXPECT_THAT(error("s3://cliks/train/*").ToString(),
              AllOf(HasSubstr("NotFound: spec.source.files.paths[1]: s3://cliks/train/*"), HasSubstr("NoSuchBucket"),
                    HasSubstr("check the bucket's name")));
  setenv("AWS_REGION", "eu-west-1", 1);
  EXPECT_THAT(error("s3://clicks/train/*").ToString(),
              HasSubstr("the bucket is in region us-east-1: set spec.source.files.objectStore.region to it"));
  unsetenv("AWS_REGION");
  setenv("AWS_SECRET_ACCESS_KEY", "not it", 1);
  EXPECT_THAT(
      error("s3://clicks/train/*").ToString(),
      AllOf(HasSubstr("SignatureDoesNotMatch"), HasSubstr("check the keys in the Secret"), Not(HasSubstr("not it"))));
  unsetenv("AWS_ACCESS_KEY_ID");
  EXPECT_THAT(error("s3://clicks/train/*").ToString(),
              AllOf(HasSubstr("403 AccessDenied"), HasSubstr("asked for without credentials")));
}

TEST_F(S3, NoticesAnObjectThatIsWrittenAnew) {
  S3Server server;
  server.Put("clicks", "a", "first");
  const auto files = List(server, {"s3://clicks/a"});
  ASSERT_TRUE(files.ok()) << files.status().ToString();
  server.Put("clicks", "a", "later");
  std::atomic<uint64_t> bytes_read{0};
  const auto bytes = ReadAll(*files, 0, &bytes_read);
  EXPECT_EQ(bytes.status().code(), Code::kConflict);
  EXPECT_THAT(bytes.status().message(), HasSubstr("s3://clicks/a: at byte 0: the object was written anew"));
}

TEST_F(S3, FeedsAPipeline) {
  S3Server server;
  std::vector<int64_t> expected;
  for (int64_t f = 0; f < 3; ++f) {
    std::string file;
    for (int64_t i = 0; i < 10; ++i) {
      expected.push_back(f * 10 + i);
      file += TFRecordOf(ExampleOf({{"x", Int64List({f * 10 + i})}}));
    }
    server.Put("clicks", "train-" + std::to_string(f), file);
  }
  PipelineRun run(R"({"source": {"files": {"paths": ["s3://clicks/train-*"], "objectStore": {"endpoint": ")" +
                  server.endpoint() + R"("}}}, "features": [{"name": "x", "dtype": "int64", "shape": []}],
                  "pipeline": [{"batch": {"size": 30}}]})");
  ASSERT_TRUE(run.status().ok()) << run.status().ToString();
  const auto delivered = run.Epoch(0);
  ASSERT_EQ(delivered.size(), 1u);
  EXPECT_EQ(delivered[0].Values<int64_t>(), expected);
}

// Nobody gave it an ETag.
TEST_F(S3, ReadsWhatWasLaidIntoTheServersFolder) {
  S3Server server;
  const std::string data = Numbered(3 << 20);
  std::filesystem::create_directory(server.root() + "/clicks");
  std::ofstream(server.root() + "/clicks/a", std::ios::binary) << data;
  for (const char* path : {"s3://clicks/a", "s3://clicks/*"}) {
    const auto files = List(server, {path});
    ASSERT_TRUE(files.ok()) << files.status().ToString();
    std::atomic<uint64_t> bytes_read{0};
    const auto bytes = ReadAll(*files, 0, &bytes_read);
    ASSERT_TRUE(bytes.ok()) << bytes.status().ToString();
    EXPECT_TRUE(*bytes == data);
  }
}

// A pass that names come from takes no longer than its requests.
TEST_F(S3, ListsManyFolders) {
  S3Server server;
  std::vector<std::string> expected;
  for (int folder = 0; folder < 20; ++folder) {
    char name[64];
    std::snprintf(name, sizeof name, "/many/data/%03d", folder);
    std::filesystem::create_directories(server.root() + name);
    for (int i = 0; i < 100; ++i) {
      char file[128];
      std::snprintf(file, sizeof file, "%s/part-%03d", name, i);
      std::ofstream(server.root() + file) << file;
      expected.push_back("s3:/" + std::string(file));
    }
  }
  const auto files = List(server, {"s3://many/data/*/part-*"});
  ASSERT_TRUE(files.ok()) << files.status().ToString();
  EXPECT_EQ(Paths(*files), expected);
  EXPECT_EQ(server.proxy().requests().size(), 21u);  // one a folder; none for an object
}

}  // namespace
}  // namespace headrace::side
