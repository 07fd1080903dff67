#include "sidecar/source/tfrecord.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sidecar/source/crc32c.h"
#include "tests/sidecar/files.h"
#include "tests/sidecar/records.h"

namespace headrace::side {
namespace {

using testing::HasSubstr;

class Nothing : public Decoder {
 public:
  Status Decode(std::span<const Record>, std::span<uint8_t* const>) override { return {}; }
};

FileRecords ReadAll(const std::string& path, Compression compression = Compression::kAuto, size_t block = 7) {
  const auto check = CheckTFRecords(std::make_unique<Nothing>());
  return ReadFile(FileFormat::kTFRecord, path, compression, block, check.get());
}

std::vector<std::string> SomeRecords() {
  std::vector<std::string> records = {"", "a", std::string(300, 'b')};
  // Beyond one block, so that a record must be carried over, and one larger than a block.
  for (int i = 0; i < 600; ++i) records.push_back(std::string(997, static_cast<char>('a' + i % 26)));
  records.push_back(std::string(BytesBlockPool::kUsualBytes * 2 + 13, 'z'));
  records.push_back("last");
  return records;
}

std::string FileOf(const std::vector<std::string>& records) {
  std::string file;
  for (const std::string& record : records) file += TFRecordOf(record);
  return file;
}

TEST(Crc32c, HasTheCheckValueOfItsDefinition) {
  // The check value of CRC-32C in RFC 3720, appendix B.4, and the catalogue of CRC algorithms.
  EXPECT_EQ(Crc32c(reinterpret_cast<const uint8_t*>("123456789"), 9), 0xe3069283u);
  EXPECT_EQ(Crc32c(nullptr, 0), 0u);
}

TEST(TFRecord, ReadsEveryRecordInBlocksOfAnySize) {
  const Folder folder;
  const auto records = SomeRecords();
  const std::string path = folder.Write("a.tfrecord", FileOf(records));
  for (const size_t block : {1, 3, 1000}) {
    const FileRecords outcome = ReadAll(path, Compression::kAuto, block);
    ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
    EXPECT_EQ(outcome.records, records);
  }
}

TEST(TFRecord, ReadsAnEmptyFileAsNoRecords) {
  const Folder folder;
  const FileRecords outcome = ReadAll(folder.Write("empty", ""));
  EXPECT_TRUE(outcome.status.ok());
  EXPECT_TRUE(outcome.records.empty());
}

TEST(TFRecord, ReadsGzipOfOneMemberAndOfSeveral) {
  const Folder folder;
  const auto records = SomeRecords();
  const std::string file = FileOf(records);
  const std::string one = folder.Write("one.gz", GzipOf(file));
  const std::string two = folder.Write("two.gz", GzipOf(file.substr(0, 100001)) + GzipOf(file.substr(100001)));
  for (const std::string& path : {one, two}) {
    const FileRecords outcome = ReadAll(path);
    ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
    EXPECT_EQ(outcome.records, records);
  }
}

TEST(TFRecord, NamesFileAndOffsetWhereverAFileIsCut) {
  const Folder folder;
  const std::string first = TFRecordOf("hello");
  const std::string file = first + TFRecordOf("world");
  for (size_t length = 1; length < file.size(); ++length) {
    if (length == first.size()) continue;
    const FileRecords outcome = ReadAll(folder.Write("cut", file.substr(0, length)));
    EXPECT_EQ(outcome.status.code(), Code::kCorrupt) << length;
    const size_t offset = length < first.size() ? 0 : first.size();
    EXPECT_THAT(outcome.status.message(), HasSubstr("/cut: at byte " + std::to_string(offset) + ": "));
    EXPECT_THAT(outcome.status.message(), HasSubstr("truncated"));
  }
}

TEST(TFRecord, FindsEveryFlippedBit) {
  const Folder folder;
  const std::string first = TFRecordOf("hello");
  const std::string file = first + TFRecordOf("world");
  for (size_t bit = 0; bit < file.size() * 8; ++bit) {
    std::string damaged = file;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    const FileRecords outcome = ReadAll(folder.Write("flipped", damaged), Compression::kNone);
    EXPECT_EQ(outcome.status.code(), Code::kCorrupt) << bit;
    const size_t offset = bit / 8 < first.size() ? 0 : first.size();
    EXPECT_THAT(outcome.status.message(), HasSubstr("at byte " + std::to_string(offset) + ": the checksum of "));
  }
}

TEST(TFRecord, FindsCutAndDamagedGzip) {
  const Folder folder;
  const std::string gzip = GzipOf(FileOf(SomeRecords()));
  EXPECT_THAT(ReadAll(folder.Write("cut.gz", gzip.substr(0, gzip.size() / 2))).status.message(),
              HasSubstr("truncated"));
  std::string damaged = gzip;
  damaged[damaged.size() - 5] ^= 1;  // the stored CRC-32 of the member
  EXPECT_THAT(ReadAll(folder.Write("bad.gz", damaged)).status.message(), HasSubstr("checksum"));
  EXPECT_THAT(ReadAll(folder.Write("plain", FileOf({"x"})), Compression::kGzip).status.message(),
              HasSubstr("spec.source.files.compression"));
}

TEST(TFRecord, NamesAFileThatIsNotThere) {
  const FileRecords outcome = ReadAll("/nowhere/a.tfrecord");
  EXPECT_EQ(outcome.status.code(), Code::kNotFound);
  EXPECT_THAT(outcome.status.message(), HasSubstr("/nowhere/a.tfrecord"));
}

}  // namespace
}  // namespace headrace::side
