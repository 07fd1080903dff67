// The files of a bucket, while it is listed. The server: tests/sidecar/remote/fake_bucket.h.
#include "sidecar/source/file_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "tests/sidecar/remote/fake_bucket.h"

namespace headrace::side {
namespace {

using fakes::Answer;
using fakes::HttpFaults;
using fakes::SeenRequest;
using testing::HasSubstr;

constexpr size_t kFolders = 30;
constexpr size_t kInFolder = 20;

std::string NameOf(size_t file) {
  return "data/" + std::to_string(1000 + file / kInFolder) + "/part-" + std::to_string(1000 + file % kInFolder);
}

std::set<std::string> Keys() {
  std::set<std::string> keys;
  for (size_t file = 0; file < kFolders * kInFolder; ++file) keys.insert(NameOf(file));
  return keys;
}

Result<FileTable> List(const HttpFaults& server) {
  FilesSource source;
  source.paths = {"s3://bucket/data/*/part-*"};
  source.object_store.endpoint = server.url();
  return ListFiles(source, "/");
}

// What a folder's listing answers is up to `answer`; the list of folders is the bucket's.
HttpFaults ServerOf(const FakeBucket& bucket, std::function<std::optional<Answer>(const std::string& target)> answer) {
  return HttpFaults([&bucket, answer = std::move(answer)](
                        const SeenRequest& request) { return answer(request.target).value_or(bucket(request)); },
                    /*handles_at_once=*/true);
}

TEST(FileTable, IsReadByAnyThreadWhileItGrows) {
  const FakeBucket bucket(Keys(), 7);
  const HttpFaults server(bucket, /*handles_at_once=*/true);
  const auto files = List(server);
  ASSERT_TRUE(files.ok()) << files.status().ToString();
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 3; ++reader) {
    readers.emplace_back([&] {
      size_t file = 0;
      for (; *files->Has(file); ++file) {
        ASSERT_EQ(files->path(file), "s3://bucket/" + NameOf(file));
        ASSERT_EQ(files->remote(file)->size, NameOf(file).size());
      }
      EXPECT_EQ(file, kFolders * kInFolder);
    });
  }
  for (std::thread& reader : readers) reader.join();
}

// The files before it are there; whoever wants one behind it is told.
TEST(FileTable, AFolderThatMayNotBeListedIsAnErrorWhereItsFilesAreDue) {
  const FakeBucket bucket(Keys(), 100);
  const HttpFaults server = ServerOf(bucket, [](const std::string& target) -> std::optional<Answer> {
    if (target.find("1020") == std::string::npos) return {};
    return Answer{.status = 403, .body = "<Error><Code>AccessDenied</Code></Error>"};
  });
  const auto files = List(server);
  ASSERT_TRUE(files.ok()) << files.status().ToString();
  size_t file = 0;
  Result<bool> has = true;
  while ((has = files->Has(file)).ok() && *has) ++file;
  EXPECT_LE(file, 20 * kInFolder);
  EXPECT_THAT(has.status().message(), testing::AllOf(HasSubstr("spec.source.files.paths[0]: s3://bucket/data/*/part-*"),
                                                     HasSubstr("403 AccessDenied")));
}

// Nobody waits for a server that says nothing: neither a reader that is stopped, nor who drops the table.
TEST(FileTable, EndsWhileItIsListed) {
  const FakeBucket bucket(Keys(), 100);
  const HttpFaults server = ServerOf(bucket, [](const std::string& target) -> std::optional<Answer> {
    if (target.find("10") == std::string::npos || target.find("1000") != std::string::npos) return {};
    return Answer{.silent = true};
  });
  for (const bool stops : {true, false}) {
    const auto files = List(server);
    ASSERT_TRUE(files.ok()) << files.status().ToString();
    EXPECT_TRUE(*files->Has(kInFolder - 1));
    if (!stops) continue;
    std::thread reader([&] { EXPECT_FALSE(files->Has(kInFolder).ok()); });
    files->Stop();
    reader.join();
  }
}

// The transfers' thread sleeps for up to a second when it has nothing to do: whoever ends it must wake it, whatever it
// was at. (A machine that stands still may be slow once or twice.)
TEST(FileTable, EndsAtOnceWhereverItsListingIs) {
  const FakeBucket bucket(Keys(), 7);
  const HttpFaults server(bucket, /*handles_at_once=*/true);
  int slow = 0;
  for (int round = 0; round < 60; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    {
      const auto files = List(server);
      ASSERT_TRUE(files.ok()) << files.status().ToString();
      ASSERT_TRUE(*files->Has(static_cast<size_t>(round) % 20));
    }
    if (std::chrono::steady_clock::now() - begin > std::chrono::milliseconds(900)) ++slow;
  }
  EXPECT_LT(slow, 3);
}

}  // namespace
}  // namespace headrace::side
