#include "sidecar/source/read_ahead.h"

#include <gtest/gtest.h>

#include <cstring>

#include "sidecar/source/raw_stream.h"
#include "tests/sidecar/remote/stores.h"

namespace headrace::side {
namespace {

struct Asked {
  uint64_t offset = 0;
  size_t size = 0;
};

// What the test sees of a file that a stream owns.
struct Log {
  std::vector<Asked> asked;
  uint64_t pending_bytes = 0;  // of reads that are there, finished or not
  int dropped = 0;             // reads that were given up
  uint64_t fails_at = UINT64_MAX;
};

// What lies in a file of any size.
std::string DataAt(uint64_t offset, size_t n) {
  static const std::string tile = Numbered(99991);
  std::string data;
  while (data.size() < n) {
    const size_t begin = (offset + data.size()) % tile.size();
    data.append(tile, begin, n - data.size());
  }
  return data;
}

class FakeRead : public PendingRead {
 public:
  FakeRead(Log* log, uint64_t offset, std::span<uint8_t> out) : log_(*log), offset_(offset), out_(out) {
    log_.pending_bytes += out.size();
  }
  ~FakeRead() override {
    log_.pending_bytes -= out_.size();
    if (!finished_) ++log_.dropped;
  }
  Status Finish() override {
    if (offset_ >= log_.fails_at) return Unavailable("far: at byte " + std::to_string(offset_) + ": gone");
    finished_ = true;
    std::memcpy(out_.data(), DataAt(offset_, out_.size()).data(), out_.size());
    return {};
  }

 private:
  Log& log_;
  const uint64_t offset_;
  const std::span<uint8_t> out_;
  bool finished_ = false;
};

class FakeFile : public RemoteFile {
 public:
  FakeFile(Log* log, uint64_t size) : log_(*log), size_(size) {}
  Result<size_t> ReadAt(uint64_t, std::span<uint8_t>) override { return Internal("not read ahead"); }
  std::unique_ptr<PendingRead> Begin(uint64_t offset, std::span<uint8_t> out) override {
    EXPECT_GT(out.size(), 0u);
    EXPECT_LE(offset + out.size(), size_);
    log_.asked.push_back({offset, out.size()});
    return std::make_unique<FakeRead>(&log_, offset, out);
  }
  uint64_t size() const override { return size_; }
  const std::string& path() const override { return path_; }

 private:
  Log& log_;
  const uint64_t size_;
  const std::string path_ = "far";
};

std::unique_ptr<RawStream> Open(Log* log, uint64_t size) {
  return MakeReadAhead(std::make_unique<FakeFile>(log, size));
}

std::string Read(RawStream& stream, size_t n) {
  std::string all;
  std::string buffer(n, '\0');
  while (all.size() < n) {
    const auto read = stream.Read(reinterpret_cast<uint8_t*>(buffer.data()), n - all.size());
    EXPECT_TRUE(read.ok()) << read.status().ToString();
    if (!read.ok() || *read == 0) break;
    all.append(buffer, 0, *read);
  }
  return all;
}

TEST(ReadAhead, ReadsEveryByteOnceInGrowingParts) {
  const uint64_t size = (40 << 20) + 12345;
  Log log;
  const auto stream = Open(&log, size);
  EXPECT_TRUE(Read(*stream, size) == DataAt(0, size));
  EXPECT_EQ(Read(*stream, 10), "");
  uint64_t next = 0;
  for (size_t i = 0; i < log.asked.size(); ++i) {
    EXPECT_EQ(log.asked[i].offset, next);
    next += log.asked[i].size;
    const size_t most = std::min(kLeastPartBytes << i, kMostPartBytes);
    EXPECT_EQ(log.asked[i].size, std::min<uint64_t>(most, size - log.asked[i].offset));
  }
  EXPECT_EQ(next, size);
  EXPECT_EQ(log.dropped, 0);
}

TEST(ReadAhead, StartsBeforeItIsRead) {
  const uint64_t size = 32 << 20;
  Log log;
  const auto stream = Open(&log, size);
  EXPECT_GE(log.asked.size(), 3u);
  uint64_t ahead = 0;
  for (const Asked& asked : log.asked) ahead += asked.size;
  EXPECT_LE(ahead, kMostPartBytes);  // of a file that may not be read at all
}

TEST(ReadAhead, SharesItsMemory) {
  const uint64_t size = 200 << 20;
  std::vector<Log> logs(4);
  std::vector<std::unique_ptr<RawStream>> streams;
  for (Log& log : logs) streams.push_back(Open(&log, size));
  uint64_t most = 0;
  for (int i = 0; i < 30; ++i) {
    for (const auto& stream : streams) Read(*stream, 1 << 20);
    uint64_t pending = 0;
    for (const Log& log : logs) pending += log.pending_bytes;
    most = std::max(most, pending);
  }
  EXPECT_LE(most, kReadAheadBytes);
  EXPECT_GE(most, kReadAheadBytes / 2);
}

TEST(ReadAhead, PassesOverWithoutReading) {
  const uint64_t size = 100 << 20;
  Log log;
  const auto stream = Open(&log, size);
  EXPECT_EQ(Read(*stream, 100), DataAt(0, 100));
  ASSERT_TRUE(stream->PassOver(1000).ok());  // within what is there
  const size_t asked = log.asked.size();
  EXPECT_EQ(Read(*stream, 100), DataAt(1100, 100));
  EXPECT_EQ(log.asked.size(), asked);
  ASSERT_TRUE(stream->PassOver(50 << 20).ok());
  EXPECT_EQ(Read(*stream, 100), DataAt(1200 + (50 << 20), 100));
  EXPECT_EQ(log.asked[asked].offset, 1200u + (50 << 20));
  EXPECT_EQ(log.asked[asked].size, kLeastPartBytes);
  EXPECT_GT(log.dropped, 0);
  ASSERT_TRUE(stream->PassOver(size).ok());
  EXPECT_EQ(Read(*stream, 1), "");
}

TEST(ReadAhead, RewindsAfterALookForNothing) {
  const uint64_t size = 1 << 20;
  Log log;
  const auto stream = Open(&log, size);
  EXPECT_EQ(Read(*stream, 6), DataAt(0, 6));
  const size_t asked = log.asked.size();
  stream->Rewind();
  EXPECT_TRUE(Read(*stream, size) == DataAt(0, size));
  EXPECT_EQ(log.asked.size(), asked);  // all of it was on its way
}

TEST(ReadAhead, ErrorsComeWhereTheyAre) {
  const uint64_t size = 1 << 20;
  Log log;
  log.fails_at = kLeastPartBytes;
  const auto stream = Open(&log, size);
  EXPECT_EQ(Read(*stream, kLeastPartBytes), DataAt(0, kLeastPartBytes));
  uint8_t byte = 0;
  EXPECT_EQ(stream->Read(&byte, 1).status().message(), "far: at byte 262144: gone");
  EXPECT_EQ(stream->Read(&byte, 1).status().message(), "far: at byte 262144: gone");
}

TEST(ReadAhead, GivesUpItsReadsWithTheStream) {
  const uint64_t size = 32 << 20;
  Log log;
  Open(&log, size).reset();
  EXPECT_EQ(log.pending_bytes, 0u);
  EXPECT_EQ(static_cast<size_t>(log.dropped), log.asked.size());
}

TEST(ReadAhead, ManyStreamsGetSmallWindows) {
  EXPECT_EQ(ReadAheadWindow(1, 1 << 30), kReadAheadBytes);
  EXPECT_EQ(ReadAheadWindow(16, 1 << 30), kReadAheadBytes / 16);
  EXPECT_EQ(ReadAheadWindow(100000, 1 << 30), 2 * kLeastPartBytes);
  EXPECT_EQ(ReadAheadWindow(1, 0), kMostPartBytes / 2);
}

}  // namespace
}  // namespace headrace::side
