// What a shuffle's buffer takes of memory, and that its records stay the same. Expected bounds: of compaction.h.
#include "sidecar/transform/compaction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "sidecar/core/columns_block.h"
#include "sidecar/transform/shuffle.h"

namespace headrace::side {
namespace {

constexpr size_t kRecordBytes = 1000;
constexpr size_t kBefore = 12;
constexpr size_t kAfter = 4;
constexpr size_t kWhole = kBefore + kRecordBytes + kAfter;

// Records of kRecordBytes bytes, each of which begins with its number, with a frame around them.
class Numbers : public Dataset<Record> {
 public:
  Numbers(BytesBlockPool* pool, uint64_t count) : pool_(*pool), count_(count) {}
  std::unique_ptr<Stream<Record>> Iterate(Pass) const override { return std::make_unique<NumberStream>(*this); }

 private:
  class NumberStream : public Stream<Record> {
   public:
    explicit NumberStream(const Numbers& numbers) : numbers_(numbers) {}
    Result<size_t> Read(std::span<Record> out) override {
      if (next_ == numbers_.count_) return size_t{0};
      if (!block_ || row_ == rows_) NewBlock();
      out[0].block = block_;
      out[0].value = row_++;
      ++next_;
      return size_t{1};
    }

   private:
    void NewBlock() {
      BytesBlock* const block = numbers_.pool_.Get(BytesBlockPool::kUsualBytes);
      block_ = BlockRef(block);
      block->origin = {&path_, next_ * kWhole, kBefore, kAfter};
      row_ = 0;
      rows_ = static_cast<int64_t>(block->capacity() / kWhole);
      for (int64_t row = 0; row < rows_; ++row) {
        uint8_t* const record = block->data() + static_cast<size_t>(row) * kWhole;
        const uint64_t number = next_ + static_cast<uint64_t>(row);
        std::memset(record, static_cast<int>(number % 251), kWhole);
        std::memcpy(record + kBefore, &number, sizeof number);
        block->Add(static_cast<size_t>(row) * kWhole + kBefore, kRecordBytes);
      }
    }

    const Numbers& numbers_;
    const std::string path_ = "numbers";
    BlockRef block_;
    int64_t row_ = 0;
    int64_t rows_ = 0;
    uint64_t next_ = 0;
  };

  BytesBlockPool& pool_;
  const uint64_t count_;
};

// The same as rows of two columns: the number, and bytes that follow from it.
class NumberRows : public Dataset<Record> {
 public:
  static constexpr int64_t kBlockRows = 1000;
  NumberRows(BytesBlockPool* pool, uint64_t count) : pool_(*pool), count_(count) {}
  std::unique_ptr<Stream<Record>> Iterate(Pass) const override { return std::make_unique<RowStream>(*this); }

 private:
  class RowStream : public Stream<Record> {
   public:
    explicit RowStream(const NumberRows& numbers) : numbers_(numbers) {}
    Result<size_t> Read(std::span<Record> out) override {
      if (next_ == numbers_.count_) return size_t{0};
      const auto row = static_cast<int64_t>(next_) % kBlockRows;
      if (row == 0) block_ = NewBlock();
      out[0].block = block_;
      out[0].value = row;
      ++next_;
      return size_t{1};
    }

   private:
    BlockRef NewBlock() const {
      auto* const block = new ColumnsBlock;
      block->origin = {&path_, "group " + std::to_string(next_ / 5000), static_cast<int64_t>(next_ % 5000)};
      block->rows = kBlockRows;
      const auto column = [&](DType dtype, int64_t unit) {
        ColumnView& view = block->columns.emplace_back();
        view.dtype = dtype;
        view.rows = ColumnView::Rows::kFixed;
        view.unit = unit;
        auto memory = std::shared_ptr<uint8_t[]>(new uint8_t[kBlockRows * view.row_bytes()]);
        block->bytes += kBlockRows * view.row_bytes();
        view.values = memory.get();
        block->keeps.push_back(memory);
        return memory.get();
      };
      uint8_t* const numbers = column(DType::kInt64, 1);
      uint8_t* const rest = column(DType::kUint8, kRecordBytes - sizeof(int64_t));
      for (uint64_t row = 0; row < kBlockRows; ++row) {
        const uint64_t number = next_ + row;
        std::memcpy(numbers + row * sizeof number, &number, sizeof number);
        std::memset(rest + row * (kRecordBytes - sizeof number), static_cast<int>(number % 251),
                    kRecordBytes - sizeof number);
      }
      block->CountOn(&numbers_.pool_);
      return BlockRef(block);
    }

    const NumberRows& numbers_;
    const std::string path_ = "numbers";
    BlockRef block_;
    uint64_t next_ = 0;
  };

  BytesBlockPool& pool_;
  const uint64_t count_;
};

// Shuffles 300,000 records of 1,000 bytes, calls check(record) for each, which tells its number, and expects at
// most 2.75 times what 80,000 of them take, more than is left alone; unless nothing is compacted.
template <typename Records, typename Check>
void ExpectBounded(double record_bytes, Check check) {
  constexpr uint64_t kCount = 300000;
  constexpr int64_t kBuffer = 80000;
  for (const bool compacts : {false, true}) {
    BytesBlockPool pool;
    size_t most = 0;
    {
      Shuffle shuffle;
      shuffle.buffer_size = kBuffer;
      shuffle.seed = 3;
      const ShuffleDataset<Record> shuffled(std::make_unique<Records>(&pool, kCount), shuffle, 0,
                                            compacts ? &pool : nullptr);
      const auto stream = shuffled.Iterate({});
      std::vector<bool> seen(kCount);
      Record record;
      for (uint64_t i = 0; i < kCount; ++i) {
        ASSERT_TRUE(*ReadOne(*stream, record));
        uint64_t number = kCount;
        check(record, &number);
        if (testing::Test::HasFatalFailure()) return;
        ASSERT_LT(number, kCount);
        ASSERT_FALSE(seen[number]);
        seen[number] = true;
        most = std::max(most, pool.live_bytes());
      }
      EXPECT_FALSE(*ReadOne(*stream, record));
    }
    EXPECT_EQ(pool.live_bytes(), 0u);
    if (compacts) {
      EXPECT_LT(static_cast<double>(most), 2.75 * kBuffer * record_bytes);
    } else {
      EXPECT_GT(static_cast<double>(most), 2.75 * kBuffer * record_bytes) << "there is nothing to be compacted";
    }
  }
}

TEST(Compaction, BoundsTheMemoryOfAShuffle) {
  ExpectBounded<Numbers>(kWhole, [](const Record& record, uint64_t* number) {
    const auto bytes = record.bytes();
    std::memcpy(number, bytes.data(), sizeof *number);
    // Its bytes and those around it are its own, and messages say where it was.
    ASSERT_EQ(bytes.size(), kRecordBytes);
    ASSERT_EQ(bytes.data()[kRecordBytes + kAfter - 1], *number % 251);
    ASSERT_EQ(*(bytes.data() - kBefore), *number % 251);
    if (*number % 1000 == 7) {
      ASSERT_EQ(record.Place(), "numbers: record at byte " + std::to_string(*number * kWhole));
    }
  });
}

TEST(Compaction, BoundsTheMemoryOfAShuffleOfRows) {
  ExpectBounded<NumberRows>(kRecordBytes, [](const Record& record, uint64_t* number) {
    const ColumnsBlock& block = *record.block->columns_block();
    std::memcpy(number, block.columns[0].Row(record.value).data, sizeof *number);
    const BytesRef rest = block.columns[1].Row(record.value);
    ASSERT_EQ(rest.size, kRecordBytes - sizeof *number);
    ASSERT_EQ(rest.data[0], *number % 251);
    ASSERT_EQ(rest.data[rest.size - 1], *number % 251);
    if (*number % 1000 == 7) {
      ASSERT_EQ(record.Place(),
                "numbers: group " + std::to_string(*number / 5000) + ", row " + std::to_string(*number % 5000));
    }
  });
}

TEST(Compaction, GivesBackWhatItTook) {
  BytesBlockPool pool;
  {
    Shuffle shuffle;
    shuffle.buffer_size = 80000;
    const ShuffleDataset<Record> shuffled(std::make_unique<Numbers>(&pool, 200000), shuffle, 0, &pool);
    const auto stream = shuffled.Iterate({});
    std::vector<Record> some(120000);
    size_t read = 0;
    while (read < some.size()) {
      const auto more = stream->Read(std::span(some).subspan(read));
      ASSERT_TRUE(more.ok());
      read += *more;
      // Only a few are held at a time.
      for (size_t i = 0; i + 1000 < read; ++i) some[i] = {};
    }
    EXPECT_GT(pool.live_bytes(), 0u);
  }
  EXPECT_EQ(pool.live_bytes(), 0u);
}

}  // namespace
}  // namespace headrace::side
