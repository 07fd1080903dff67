// Objects that are kept on a volume: by whom they are found again, what makes room, and what is never kept.
#include "sidecar/source/object_cache.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "common/spec/names.h"
#include "sidecar/source/byte_stream.h"
#include "tests/fakes/http_faults.h"
#include "tests/sidecar/files.h"

namespace headrace::side {
namespace {

using testing::IsEmpty;

class ObjectCacheTest : public testing::Test {
 protected:
  std::unique_ptr<ObjectCache> Open(uint64_t most_bytes) {
    auto cache = ObjectCache::Open(folder_.path() + "/cache", most_bytes);
    EXPECT_TRUE(cache.ok()) << cache.status().message();
    return std::move(*cache);
  }
  static ObjectKey KeyOf(const std::string& name, const std::string& bytes, const std::string& version = "v1") {
    return {"s3://b/" + name, bytes.size(), version};
  }
  static bool Keep(ObjectCache& cache, const ObjectKey& key, const std::string& bytes) {
    const auto writer = cache.Begin(key);
    if (writer == nullptr || !writer->Append({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}))
      return false;
    writer->Commit();
    return true;
  }
  // The object's bytes; "-" if it is not there.
  std::string Kept(ObjectCache& cache, const ObjectKey& key) {
    const auto file = cache.Find(key, &bytes_read_);
    if (file == nullptr) return "-";
    EXPECT_EQ(file->size(), key.size);
    EXPECT_EQ(file->path(), key.path);
    std::string bytes(key.size + 100, '\0');
    const auto read = file->ReadAt(0, {reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()});
    EXPECT_TRUE(read.ok());
    return bytes.substr(0, *read);
  }
  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path() + "/cache")) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

  Folder folder_;
  std::atomic<uint64_t> bytes_read_{0};
};

TEST_F(ObjectCacheTest, FindsWhatWasKeptAlsoByAnother) {
  const std::string bytes(1000, 'x');
  const auto cache = Open(10000);
  EXPECT_EQ(Kept(*cache, KeyOf("a", bytes)), "-");
  ASSERT_TRUE(Keep(*cache, KeyOf("a", bytes), bytes));
  EXPECT_EQ(Kept(*cache, KeyOf("a", bytes)), bytes);
  EXPECT_EQ(Kept(*Open(10000), KeyOf("a", bytes)), bytes);
  EXPECT_EQ(Kept(*cache, KeyOf("b", bytes)), "-");
  EXPECT_EQ(Kept(*cache, KeyOf("a", bytes, "v2")), "-") << "the object has changed";
  ASSERT_TRUE(Keep(*cache, KeyOf("empty", ""), ""));
  EXPECT_EQ(Kept(*cache, KeyOf("empty", "")), "");
}

TEST_F(ObjectCacheTest, WhatWasNotUsedTheLongestMakesRoom) {
  const auto cache = Open(3500);
  const std::string bytes(1000, 'x');
  const timespec past[2] = {{1000, 0}, {1000, 0}};
  for (const char* name : {"a", "b", "c"}) {
    ASSERT_TRUE(Keep(*cache, KeyOf(name, bytes), bytes));
    for (const std::string& file : Files()) {
      utimensat(AT_FDCWD, (folder_.path() + "/cache/" + file).c_str(), past, 0);
    }
  }
  EXPECT_EQ(Kept(*cache, KeyOf("a", bytes)), bytes);  // used now
  const auto in_use = cache->Find(KeyOf("b", bytes), &bytes_read_);
  ASSERT_NE(in_use, nullptr);  // used after a
  ASSERT_TRUE(Keep(*cache, KeyOf("d", bytes), bytes));
  EXPECT_EQ(Kept(*cache, KeyOf("c", bytes)), "-");
  EXPECT_EQ(Kept(*cache, KeyOf("a", bytes)), bytes);
  EXPECT_EQ(Kept(*cache, KeyOf("d", bytes)), bytes);
  // One that is read goes on being there for its reader.
  ASSERT_TRUE(Keep(*cache, KeyOf("e", std::string(3000, 'y')), std::string(3000, 'y')));
  EXPECT_EQ(Kept(*cache, KeyOf("b", bytes)), "-");
  uint8_t last = 0;
  EXPECT_EQ(*in_use->ReadAt(999, {&last, 1}), 1u);
  EXPECT_EQ(last, 'x');
  EXPECT_FALSE(Keep(*cache, KeyOf("f", std::string(3500, 'z')), std::string(3500, 'z')))
      << "with its key it is too large";
}

TEST_F(ObjectCacheTest, WhatIsNotWholeIsNeverFound) {
  const auto cache = Open(10000);
  const std::string bytes(1000, 'x');
  {
    const auto writer = cache->Begin(KeyOf("a", bytes));
    ASSERT_NE(writer, nullptr);
    EXPECT_EQ(cache->Begin(KeyOf("a", bytes)), nullptr) << "somebody writes it";
    EXPECT_EQ(Open(10000)->Begin(KeyOf("a", bytes)), nullptr);
    ASSERT_TRUE(writer->Append({reinterpret_cast<const uint8_t*>(bytes.data()), 500}));
    EXPECT_EQ(Kept(*cache, KeyOf("a", bytes)), "-");
  }
  EXPECT_THAT(Files(), IsEmpty());
}

// What a process that was killed has left is removed by the next who makes room.
TEST_F(ObjectCacheTest, DraftsOfTheDeadAreRemoved) {
  const std::string bytes(1000, 'x');
  const pid_t child = fork();
  if (child == 0) {
    const auto cache = ObjectCache::Open(folder_.path() + "/cache", 10000);
    const auto writer = (*cache)->Begin(KeyOf("a", bytes));
    _exit(writer != nullptr && writer->Append({reinterpret_cast<const uint8_t*>(bytes.data()), 500}) ? 7 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_EQ(WEXITSTATUS(status), 7);
  ASSERT_EQ(Files().size(), 1u);
  const auto cache = Open(10000);
  ASSERT_TRUE(Keep(*cache, KeyOf("b", bytes), bytes));
  EXPECT_EQ(Files().size(), 1u);
  ASSERT_TRUE(Keep(*cache, KeyOf("a", bytes), bytes));
  EXPECT_EQ(Kept(*cache, KeyOf("a", bytes)), bytes);
}

TEST_F(ObjectCacheTest, AFileThatWasCutIsNotBelieved) {
  const auto cache = Open(10000);
  const std::string bytes(1000, 'x');
  ASSERT_TRUE(Keep(*cache, KeyOf("a", bytes), bytes));
  const std::string path = folder_.path() + "/cache/" + Files()[0];
  ASSERT_EQ(truncate(path.c_str(), 1000), 0);
  EXPECT_EQ(Kept(*cache, KeyOf("a", bytes)), "-");
}

TEST_F(ObjectCacheTest, AFolderThatCannotBeWrittenIsNoCache) {
  const std::string path = folder_.Write("file", "");
  EXPECT_EQ(ObjectCache::Open(path + "/cache", 10).status().code(), Code::kUnavailable);
}

// ---- Objects of a web server, through the cache

class CachedObjects : public ObjectCacheTest {
 protected:
  CachedObjects()
      : store_([this](const fakes::SeenRequest& request) {
          ++requests_;
          fakes::Answer answer = fakes::RangeOf(request, object_, "\"" + version_ + "\"");
          if (breaks_) answer.close_after = answer.body.size() / 2;
          return answer;
        }) {
    setenv(names::kEnvCacheDir, (folder_.path() + "/cache").c_str(), 1);
  }
  ~CachedObjects() override { unsetenv(names::kEnvCacheDir); }

  // The object as a loader that starts now reads it, up to `most` bytes.
  std::string Read(size_t most = SIZE_MAX) {
    FilesSource source;
    source.paths = {store_.url() + "/data.bin"};
    source.object_store.cache_bytes = 100 << 20;
    const auto files = ListFiles(source, "");
    EXPECT_TRUE(files.ok()) << files.status().message();
    EXPECT_TRUE(*files->Has(0));
    auto stream = OpenByteStream(*files, 0, Compression::kNone, &bytes_read_);
    EXPECT_TRUE(stream.ok());
    std::string bytes;
    while (bytes.size() < most) {
      std::string some(std::min<size_t>(100000, most - bytes.size()), '\0');
      const auto read = (*stream)->Read(reinterpret_cast<uint8_t*>(some.data()), some.size());
      EXPECT_TRUE(read.ok()) << read.status().message();
      if (!read.ok() || *read == 0) break;
      bytes += some.substr(0, *read);
    }
    return bytes;
  }

  std::string object_ = std::string(1 << 20, 'a') + std::string(1 << 20, 'b') + "end";
  std::string version_ = "1";
  std::atomic<int> requests_{0};
  std::atomic<bool> breaks_{false};
  fakes::HttpFaults store_;
};

TEST_F(CachedObjects, AreReadFromTheStoreOnce) {
  EXPECT_TRUE(Read() == object_);
  const int first = requests_;
  EXPECT_GT(first, 1);
  EXPECT_TRUE(Read() == object_);
  EXPECT_EQ(requests_, first + 1) << "what it is, is asked for";
}

TEST_F(CachedObjects, AreReadAgainOnceTheyChange) {
  Read();
  object_[7] = 'c';
  version_ = "2";
  EXPECT_TRUE(Read() == object_);
  EXPECT_TRUE(Read() == object_);
}

TEST_F(CachedObjects, ThatWereReadInPartAreNotKept) {
  EXPECT_EQ(Read(1500000), object_.substr(0, 1500000));
  EXPECT_THAT(Files(), IsEmpty());
  EXPECT_TRUE(Read() == object_);
  EXPECT_EQ(Files().size(), 1u);
}

TEST_F(CachedObjects, AreWholeThoughConnectionsBreak) {
  breaks_ = true;
  std::thread mend([this] {
    while (requests_ < 4) usleep(1000);
    breaks_ = false;
  });
  EXPECT_TRUE(Read() == object_);
  mend.join();
  const int first = requests_;
  EXPECT_TRUE(Read() == object_);
  EXPECT_EQ(requests_, first + 1);
}

}  // namespace
}  // namespace headrace::side
