#include "sidecar/source/columns_stream.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace headrace::side {
namespace {

// Blocks of ten rows each, numbered through, in the one column; fails at `fails_at`.
class NumberedFile : public ColumnsFile {
 public:
  struct Seen {
    std::atomic<int> blocks{0};  // that were read
    std::atomic<int> passed{0};  // rows that were passed over
  };
  NumberedFile(int blocks, int fails_at, Seen* seen) : end_(blocks * 10), fails_at_(fails_at), seen_(*seen) {}

  const std::vector<FileColumn>& columns() const override { return columns_; }
  Status Choose(const std::vector<size_t>&) override { return {}; }
  Result<std::unique_ptr<ColumnsBlock>> Next() override {
    if (row_ == fails_at_) return Corrupt("a: damaged");
    if (row_ == end_) return std::unique_ptr<ColumnsBlock>();
    auto block = std::make_unique<ColumnsBlock>();
    static const std::string path = "a";
    block->rows = 10 - row_ % 10;
    block->origin = {&path, "part 0", row_};
    block->columns.resize(2);
    block->columns[1].unit = 7;
    block->columns[1].rows = ColumnView::Rows::kFixed;
    static const std::vector<uint8_t> values(70);
    block->columns[1].values = values.data();
    block->bytes = 1000;
    row_ += static_cast<int>(block->rows);
    ++seen_.blocks;
    return block;
  }
  Result<uint64_t> PassOver(uint64_t rows) override {
    const int passed = static_cast<int>(std::min<uint64_t>(rows, static_cast<uint64_t>(end_ - row_)));
    row_ += passed;
    seen_.passed += passed;
    return static_cast<uint64_t>(passed);
  }

 private:
  const std::vector<FileColumn> columns_;
  const int end_;
  const int fails_at_;
  Seen& seen_;
  int row_ = 0;
};

class ColumnsStreamTest : public testing::Test {
 protected:
  std::unique_ptr<Stream<Record>> StreamOf(int blocks, int fails_at = -1) {
    return MakeColumnsStream(std::make_unique<NumberedFile>(blocks, fails_at, &seen_), {1, 1, 0}, &pool_, mixed_);
  }
  // The numbers of the next rows, up to n; -1: an error.
  static std::vector<int64_t> Rows(Stream<Record>& stream, size_t n) {
    std::vector<int64_t> rows;
    std::vector<Record> records(n);
    while (rows.size() < n) {
      const auto read = stream.Read(std::span(records).first(n - rows.size()));
      if (!read.ok()) {
        rows.push_back(-1);
        break;
      }
      if (*read == 0) break;
      for (size_t i = 0; i < *read; ++i) {
        const auto& block = static_cast<const ColumnsBlock&>(*records[i].block.get());
        rows.push_back(block.origin.first_row + records[i].value);
      }
    }
    return rows;
  }
  static std::vector<int64_t> Range(int64_t begin, int64_t end) {
    std::vector<int64_t> rows;
    for (; begin < end; ++begin) rows.push_back(begin);
    return rows;
  }

  NumberedFile::Seen seen_;
  BytesBlockPool pool_;
  bool mixed_ = false;
};

TEST_F(ColumnsStreamTest, GivesEveryRowInOrder) {
  const auto stream = StreamOf(30);
  EXPECT_EQ(Rows(*stream, 7), Range(0, 7));
  EXPECT_EQ(Rows(*stream, 1000), Range(7, 300));
  EXPECT_EQ(Rows(*stream, 1), Range(0, 0)) << "the end stays the end";
}

TEST_F(ColumnsStreamTest, PutsColumnsWhereTheyAreWanted) {
  const auto stream = StreamOf(1);
  Record record;
  ASSERT_EQ(*stream->Read({&record, 1}), 1u);
  const auto& columns = static_cast<const ColumnsBlock&>(*record.block.get()).columns;
  ASSERT_EQ(columns.size(), 3u);
  EXPECT_EQ(columns[0].unit, 7);
  EXPECT_EQ(columns[1].unit, 7);
  EXPECT_EQ(columns[2].unit, 1);
}

TEST_F(ColumnsStreamTest, LaysRowsTogetherThatWillBeMixed) {
  for (const bool mixed : {false, true}) {
    mixed_ = mixed;
    const auto stream = StreamOf(3);
    Record record;
    ASSERT_EQ(*stream->Read({&record, 1}), 1u);
    const ColumnsBlock& block = *record.block->columns_block();
    EXPECT_EQ(block.row_stride, mixed ? 14u : 0u);
    EXPECT_EQ(record.Place(), "a: part 0, row 0");
    EXPECT_EQ(Rows(*stream, 1000), Range(1, 30));
  }
}

TEST_F(ColumnsStreamTest, CountsTheBlocksWhoseRowsAreOut) {
  Record record;
  {
    const auto stream = StreamOf(3);
    EXPECT_EQ(pool_.live_bytes(), 0u);
    ASSERT_EQ(*stream->Read({&record, 1}), 1u);
    EXPECT_EQ(pool_.live_bytes(), 1000u);
    Rows(*stream, 14);
    EXPECT_EQ(pool_.live_bytes(), 2000u) << "the first is held by its record";
  }
  record = {};
  EXPECT_EQ(pool_.live_bytes(), 0u);
}

TEST_F(ColumnsStreamTest, AnErrorComesAfterTheRowsBeforeIt) {
  const auto stream = StreamOf(30, 50);
  std::vector<int64_t> expected = Range(0, 50);
  expected.push_back(-1);
  EXPECT_EQ(Rows(*stream, 1000), expected);
  EXPECT_EQ(Rows(*stream, 1), std::vector<int64_t>{-1});
}

TEST_F(ColumnsStreamTest, ReadsAFewBlocksAhead) {
  const auto stream = StreamOf(1000);
  Rows(*stream, 1);
  while (seen_.blocks < 3) std::this_thread::yield();  // the current one, and two more
  Rows(*stream, 9);
  EXPECT_LE(seen_.blocks, 3);
}

TEST_F(ColumnsStreamTest, PassesOverFromAnyRowToAnyOther) {
  for (const uint64_t first : {0, 1, 10, 15}) {
    for (const uint64_t passed : {1, 5, 10, 20, 21, 95, 250}) {
      const auto stream = StreamOf(30);
      Rows(*stream, first);
      ASSERT_EQ(*stream->PassOver(passed), passed);
      const auto at = static_cast<int64_t>(first + passed);
      ASSERT_EQ(Rows(*stream, 12), Range(at, std::min<int64_t>(at + 12, 300))) << first << " then " << passed;
      ASSERT_EQ(*stream->PassOver(1000), static_cast<uint64_t>(std::max<int64_t>(300 - at - 12, 0)));
      ASSERT_EQ(Rows(*stream, 1), Range(0, 0));
    }
  }
}

TEST_F(ColumnsStreamTest, WhatIsPassedOverIsNotRead) {
  const auto stream = StreamOf(1000);
  ASSERT_EQ(*stream->PassOver(5000), 5000u);
  EXPECT_EQ(seen_.passed, 5000);
  EXPECT_EQ(seen_.blocks, 0);
}

// A worker that takes ten rows of a hundred: the blocks that it reads are those that it needs, and a few of the start.
TEST_F(ColumnsStreamTest, WhoJumpsIsNotReadAheadFor) {
  const auto stream = StreamOf(1000);
  for (int64_t at = 0; at < 10000; at += 100) {
    ASSERT_EQ(Rows(*stream, 10), Range(at, at + 10));
    ASSERT_EQ(*stream->PassOver(90), 90u);
  }
  EXPECT_LE(seen_.blocks, 100 + 3);
}

TEST_F(ColumnsStreamTest, EndsWhileItReadsAhead) {
  for (int i = 0; i < 100; ++i) Rows(*StreamOf(1000), 1);
}

}  // namespace
}  // namespace headrace::side
