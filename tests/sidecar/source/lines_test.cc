// Files of lines, read whole, in blocks, from gzip. Expected lines: what Python's bytes.split(b"\n") gives, without the
// carriage return before a line end, and as tf.data.TextLineDataset nothing after the last line end.
#include "sidecar/source/lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sidecar/files.h"
#include "tests/sidecar/records.h"

namespace headrace::side {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class Lines : public testing::Test {
 protected:
  std::vector<std::string> Text(const std::string& bytes, FileFormat format = FileFormat::kText) {
    const FileRecords all = ReadFile(format, folder_.Write("a.txt", bytes));
    EXPECT_TRUE(all.status.ok()) << all.status.message();
    return all.records;
  }
  // What messages call every `step`th record, from the first.
  std::vector<std::string> Places(const std::string& bytes, FileFormat format, size_t step = 1) {
    SourceContext context;
    context.files = FileTable({folder_.Write("a.txt", bytes)});
    const auto stream = OpenRecords(FormatOf(format), context, 0);
    std::vector<std::string> places;
    Record record;
    for (size_t i = 0; *ReadOne(**stream, record); ++i) {
      if (i % step == 0) places.push_back(record.Place().substr(folder_.path().size() + 1));
    }
    return places;
  }

  Folder folder_;
};

TEST_F(Lines, EndWithLineFeedsWithOrWithoutCarriageReturns) {
  EXPECT_THAT(Text("one\ntwo\r\nthree\n"), ElementsAre("one", "two", "three"));
  EXPECT_THAT(Text("a\rb\n\r\n\r\r\n"), ElementsAre("a\rb", "", "\r"));
}

TEST_F(Lines, TheLastMayEndWithTheFile) {
  EXPECT_THAT(Text("one\ntwo"), ElementsAre("one", "two"));
  EXPECT_THAT(Text("one\ntwo\r"), ElementsAre("one", "two"));
  EXPECT_THAT(Text("x"), ElementsAre("x"));
}

TEST_F(Lines, EmptyOnesAreRecordsOfText) {
  EXPECT_THAT(Text("\n\na\n\n"), ElementsAre("", "", "a", ""));
  EXPECT_THAT(Text(""), IsEmpty());
}

TEST_F(Lines, BlankOnesArePassedOverInJsonLines) {
  EXPECT_THAT(Text("\n{}\n \t\r\n\r\n[1]\n\n", FileFormat::kJsonLines), ElementsAre("{}", "[1]"));
}

TEST_F(Lines, TheByteOrderMarkIsNoneOfThem) {
  EXPECT_THAT(Text("\xef\xbb\xbfone\n\xef\xbb\xbftwo"), ElementsAre("one", "\xef\xbb\xbftwo"));
  EXPECT_THAT(Text("\xef\xbb\xbf"), IsEmpty());
  EXPECT_THAT(Text("\xef\xbb"), ElementsAre("\xef\xbb"));
}

TEST_F(Lines, AreOfAnyLength) {
  const std::string longer_than_a_block(3 * BytesBlockPool::kUsualBytes, 'x');
  EXPECT_THAT(Text("a\n" + longer_than_a_block + "\nb\n"), ElementsAre("a", longer_than_a_block, "b"));
  EXPECT_THAT(Text("\xef\xbb\xbf" + longer_than_a_block), ElementsAre(longer_than_a_block));
}

TEST_F(Lines, LieInCompressedFilesToo) {
  EXPECT_THAT(Text(GzipOf("one\r\n") + GzipOf("two\nthr") + GzipOf("ee")), ElementsAre("one", "two", "three"));
}

TEST_F(Lines, AreCutAtAnyPlaceOfABlock) {
  std::string bytes;
  std::vector<std::string> expected;
  for (int i = 0; i < 100000; ++i) {
    expected.push_back(std::string(static_cast<size_t>(i % 13), 'a') + std::to_string(i));
    bytes += expected.back() + (i % 3 == 0 ? "\r\n" : "\n");
  }
  EXPECT_EQ(Text(bytes), expected);
}

TEST_F(Lines, AreNumberedFromOne) {
  EXPECT_THAT(Places("a\nb\n\nc", FileFormat::kText),
              ElementsAre("a.txt: line 1", "a.txt: line 2", "a.txt: line 3", "a.txt: line 4"));
  EXPECT_THAT(Places("\xef\xbb\xbf\n{}\n\n\n[]\n", FileFormat::kJsonLines),
              ElementsAre("a.txt: line 2", "a.txt: line 5"));
}

TEST_F(Lines, AreNumberedOnInLaterBlocks) {
  std::string bytes;
  for (int i = 0; i < 60000; ++i) bytes += "\n[12345678]\n";  // 720,000 bytes: three blocks
  EXPECT_THAT(Places(bytes, FileFormat::kJsonLines, 25000),
              ElementsAre("a.txt: line 2", "a.txt: line 50002", "a.txt: line 100002"));
}

TEST_F(Lines, ArePassedOverByNumber) {
  SourceContext context;
  context.files = FileTable({folder_.Write("a.txt", "a\nb\n\nc\n")});
  const auto stream = OpenRecords(FormatOf(FileFormat::kText), context, 0);
  EXPECT_EQ(*(*stream)->PassOver(3), 3u);
  Record record;
  ASSERT_TRUE(*ReadOne(**stream, record));
  EXPECT_EQ(record.bytes()[0], 'c');
  EXPECT_EQ(*(*stream)->PassOver(3), 0u);
}

}  // namespace
}  // namespace headrace::side
