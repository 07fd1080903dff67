#include "sidecar/core/rows_copy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <optional>
#include <string>

namespace headrace::side {
namespace {

using testing::ElementsAre;
using Rows = ColumnView::Rows;

// A block of rows first, first + 1, ...: an int32, two float64 a row, a string, a list of int16 and a column of nulls.
// Every fifth row has a null for a number, every seventh one for a string, every third a list with a hole.
class Table {
 public:
  explicit Table(int64_t first, int64_t count) {
    for (int64_t row = first; row < first + count; ++row) {
      numbers_.push_back(static_cast<int32_t>(row));
      pairs_.insert(pairs_.end(), {static_cast<double>(row), -static_cast<double>(row)});
      text_ += TextOf(row);
      text_ends_.push_back(static_cast<int32_t>(text_.size()));
      for (int64_t i = 0; i < row % 4; ++i) lists_.push_back(static_cast<int16_t>(row + i));
      list_ends_.push_back(static_cast<int64_t>(lists_.size()));
    }
    const auto bits = [&](int64_t each, bool is) {
      std::vector<uint8_t> made(static_cast<size_t>(count + 7) / 8, is ? 0 : 0xff);
      for (int64_t i = 0; i < count; ++i) {
        if ((first + i) % each == 0) made[static_cast<size_t>(i >> 3)] ^= static_cast<uint8_t>(1 << (i & 7));
      }
      return made;
    };
    no_number_ = bits(5, false);
    no_text_ = bits(7, false);
    holes_ = bits(3, true);
    block_ = std::make_unique<ColumnsBlock>();
    block_->rows = count;
    Add(DType::kInt32, Rows::kFixed, numbers_.data()).valid = no_number_.data();
    Add(DType::kFloat64, Rows::kFixed, pairs_.data()).unit = 2;
    ColumnView& text = Add(DType::kString, Rows::kOffsets32, text_.data());
    text.offsets = text_ends_.data();
    text.valid = no_text_.data();
    ColumnView& lists = Add(DType::kInt16, Rows::kOffsets64, lists_.data());
    lists.offsets = list_ends_.data();
    lists.holes = holes_.data();
    Add(DType::kUint8, Rows::kNone, nullptr);
  }

  static std::string TextOf(int64_t row) {
    return std::string(static_cast<size_t>(row % 3), 'a') + std::to_string(row);
  }
  std::unique_ptr<ColumnsBlock> TakeBlock() { return std::move(block_); }

 private:
  ColumnView& Add(DType dtype, Rows rows, const void* values) {
    ColumnView& view = block_->columns.emplace_back();
    view.dtype = dtype;
    view.rows = rows;
    view.values = static_cast<const uint8_t*>(values);
    return view;
  }

  std::vector<int32_t> numbers_;
  std::vector<double> pairs_;
  std::string text_;
  std::vector<int32_t> text_ends_ = {0};
  std::vector<int16_t> lists_;
  std::vector<int64_t> list_ends_ = {0};
  std::vector<uint8_t> no_number_, no_text_, holes_;
  std::unique_ptr<ColumnsBlock> block_;
};

template <typename T>
std::vector<T> ValuesOf(const ColumnView& view, int64_t row) {
  const BytesRef bytes = view.Row(row);
  std::vector<T> values(bytes.size / sizeof(T));
  if (bytes.size > 0) std::memcpy(values.data(), bytes.data, bytes.size);
  return values;
}

// That row `row` of the block is row `number` of the tables.
void ExpectRow(const ColumnsBlock& block, int64_t row, int64_t number) {
  SCOPED_TRACE("row " + std::to_string(row) + ", which was row " + std::to_string(number));
  ASSERT_EQ(block.columns.size(), 5u);
  ASSERT_EQ(block.columns[0].IsNull(row), number % 5 == 0);
  if (number % 5 != 0) {
    EXPECT_THAT(ValuesOf<int32_t>(block.columns[0], row), ElementsAre(number));
  }
  EXPECT_FALSE(block.columns[1].IsNull(row));
  EXPECT_THAT(ValuesOf<double>(block.columns[1], row), ElementsAre(number, -number));
  ASSERT_EQ(block.columns[2].IsNull(row), number % 7 == 0);
  if (number % 7 != 0) {
    const std::vector<char> text = ValuesOf<char>(block.columns[2], row);
    EXPECT_EQ(std::string(text.begin(), text.end()), Table::TextOf(number));
  }
  std::vector<int16_t> list(static_cast<size_t>(number % 4));
  std::iota(list.begin(), list.end(), static_cast<int16_t>(number));
  EXPECT_EQ(ValuesOf<int16_t>(block.columns[3], row), list);
  EXPECT_EQ(block.columns[3].HasHole(row), number % 3 == 0);
  EXPECT_TRUE(block.columns[4].IsNull(row));
}

TEST(RowsCopy, LaysABlockByRow) {
  Table table(0, 1000);
  const auto by_row = ByRow(table.TakeBlock());
  ASSERT_EQ(by_row->rows, 1000);
  EXPECT_EQ(by_row->row_stride, 4u + 16u);
  for (int64_t row = 0; row < 1000; ++row) {
    ExpectRow(*by_row, row, row);
    EXPECT_EQ(by_row->columns[0].Row(row).data + 4, by_row->columns[1].Row(row).data);
  }
}

TEST(RowsCopy, TakesRowsOfSeveralBlocksHoweverTheyAreLaid) {
  Table a(0, 100), b(100, 300), c(400, 50);
  const auto first = a.TakeBlock();
  const auto second = ByRow(b.TakeBlock());
  const auto third = c.TakeBlock();
  EXPECT_TRUE(AreAlike(*first, *second));
  std::vector<RowAt> rows;
  std::vector<int64_t> numbers;
  const auto take = [&](int64_t number) {
    rows.push_back(number < 100   ? RowAt{first.get(), number}
                   : number < 400 ? RowAt{second.get(), number - 100}
                                  : RowAt{third.get(), number - 400});
    numbers.push_back(number);
  };
  for (int64_t number = 449; number >= 0; number -= 3) take(number);
  for (int64_t number = 0; number < 450; ++number) take(number);
  ColumnsBlock copy;
  CopyRows(rows, &copy);
  ASSERT_EQ(copy.rows, static_cast<int64_t>(numbers.size()));
  for (size_t i = 0; i < numbers.size(); ++i) ExpectRow(copy, static_cast<int64_t>(i), numbers[i]);

  ColumnsBlock again;
  rows.clear();
  for (int64_t row = 0; row < copy.rows; row += 2) rows.push_back({&copy, row});
  CopyRows(rows, &again);
  for (size_t i = 0; i < rows.size(); ++i) ExpectRow(again, static_cast<int64_t>(i), numbers[2 * i]);
}

TEST(RowsCopy, CountsWhatItTakes) {
  Table table(0, 1000);
  const auto by_row = ByRow(table.TakeBlock());
  size_t rows = 0;
  for (int64_t row = 0; row < 1000; ++row) rows += by_row->RowBytes(row);
  EXPECT_GE(by_row->memory(), rows);
  EXPECT_LE(by_row->memory(), rows + 1000 * (2 * sizeof(int64_t) + 4 + 1) + 100);  // two offsets, nulls' numbers, bits
}

TEST(RowsCopy, LeavesABlockOfStringsAlone) {
  auto block = std::make_unique<ColumnsBlock>();
  block->rows = 1;
  block->columns.emplace_back().rows = Rows::kNone;
  const ColumnsBlock* const is = block.get();
  EXPECT_EQ(ByRow(std::move(block)).get(), is);
}

TEST(RowsCopy, OfColumnsOfOtherTypesAreNotAlike) {
  Table table(0, 1);
  const auto block = table.TakeBlock();
  const auto changed = [&](auto change) {
    ColumnsBlock other;
    other.columns = block->columns;
    change(&other.columns[1]);
    return AreAlike(*block, other);
  };
  EXPECT_TRUE(changed([](ColumnView*) {}));
  EXPECT_FALSE(changed([](ColumnView* view) { view->dtype = DType::kInt64; }));
  EXPECT_FALSE(changed([](ColumnView* view) { view->unit = 3; }));
  EXPECT_FALSE(changed([](ColumnView* view) { view->rows = Rows::kNone; }));
}

}  // namespace
}  // namespace headrace::side
