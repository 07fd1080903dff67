// Arrow's own readers make a bitmap of each column's nulls, whether it has any or not, which costs as much as all the
// rest of it.
#include "sidecar/source/parquet_numbers.h"

#include <parquet/exception.h>
#include <parquet/metadata.h>
#include <parquet/types.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "sidecar/source/arrow_columns.h"
#include "sidecar/source/parquet_pages.h"

namespace headrace::side {
namespace {

uint8_t* KeptMemory(int64_t bytes, ColumnsBlock* block) {
  PARQUET_ASSIGN_OR_THROW(uint8_t* const memory, MakeMemory(bytes, block));
  return memory;
}

template <typename ParquetType>
class TypedColumn : public NumberColumn {
 public:
  // `stay` as of ColumnPages.
  TypedColumn(std::unique_ptr<parquet::PageReader> pages, const parquet::ColumnDescriptor* column, bool stay,
              DType dtype)
      : TypedColumn(std::make_unique<ColumnPages>(std::move(pages), column, kPlainBytes, stay), column, dtype) {}

  bool HasRow() const override { return left_ > 0; }

  void HaveRow() override {
    if (left_ > 0) return;
    plain_ = pages_.TakePlain();
    if (!plain_ && !reader_->HasNext()) throw Ended();
    left_ = plain_ ? plain_->rows : pages_.rows();
  }

  void Skip(int64_t rows) override {
    while (rows > 0) {
      HaveRow();
      const int64_t here = std::min(rows, left_);
      if (plain_) {
        plain_->values += here * kPlainBytes;
      } else if (reader_->Skip(here) != here) {
        throw Ended();
      }
      left_ -= here;
      rows -= here;
    }
  }

  int64_t RowsAsTheyLie() const override { return plain_ && plain_->keeps != nullptr ? left_ : 0; }

  void Read(int64_t rows, ColumnsBlock* block) override {
    ColumnView view;
    view.dtype = dtype_;
    view.rows = ColumnView::Rows::kFixed;
    if (RowsAsTheyLie() >= rows) {
      view.values = plain_->values;
      block->keeps.push_back(plain_->keeps);
      block->bytes += static_cast<size_t>(rows) * sizeof(Value);
      Skip(rows);
    } else {
      Copy(rows, block, &view);
    }
    block->columns.push_back(view);
  }

 private:
  using Value = typename ParquetType::c_type;
  // Bools are bits there.
  static constexpr size_t kPlainBytes = ParquetType::type_num == parquet::Type::BOOLEAN ? 0 : sizeof(Value);

  TypedColumn(std::unique_ptr<ColumnPages> pages, const parquet::ColumnDescriptor* column, DType dtype)
      : pages_(*pages),
        reader_(std::static_pointer_cast<parquet::TypedColumnReader<ParquetType>>(
            parquet::ColumnReader::Make(column, std::move(pages), ArrowMemory()))),
        dtype_(dtype),
        present_(column->max_definition_level()) {}

  // Writes the next rows to memory that the block keeps.
  void Copy(int64_t rows, ColumnsBlock* block, ColumnView* view) {
    auto* const values = reinterpret_cast<Value*>(KeptMemory(rows * static_cast<int64_t>(sizeof(Value)), block));
    uint8_t* valid = nullptr;
    for (int64_t row = 0; row < rows;) {
      HaveRow();
      const int64_t here = std::min(rows - row, left_);
      if (plain_) {
        std::memcpy(values + row, plain_->values, static_cast<size_t>(here) * sizeof(Value));
        Skip(here);
        row += here;
        continue;
      }
      const bool levels = present_ > 0 && !pages_.no_nulls();
      if (levels && levels_.size() < static_cast<size_t>(here)) levels_.resize(static_cast<size_t>(here));
      int64_t there = 0;
      const int64_t read = reader_->ReadBatch(here, levels ? levels_.data() : nullptr, nullptr, values + row, &there);
      if (read <= 0 || there > read) throw Ended();
      if (there < read && !levels) throw Ended();
      if (there < read && valid == nullptr) {
        valid = KeptMemory((rows + 7) / 8, block);
        std::memset(valid, 0xff, static_cast<size_t>((rows + 7) / 8));
      }
      if (there < read) Spread(values, row, read, there, valid);
      left_ -= read;
      row += read;
    }
    view->values = reinterpret_cast<const uint8_t*>(values);
    view->valid = valid;
  }

  parquet::ParquetException Ended() const {
    return parquet::ParquetException("column \"" + reader_->descr()->path()->ToDotString() +
                                     "\" has fewer values than its row group has rows");
  }

  // Moves `there` values, which were read one after another to values[row], to the rows of `read` that have one.
  void Spread(Value* values, int64_t row, int64_t read, int64_t there, uint8_t* valid) const {
    for (int64_t i = read; i-- > 0;) {
      const int64_t at = row + i;
      if (levels_[static_cast<size_t>(i)] == present_) {
        if (there == 0) throw Ended();
        values[at] = values[row + --there];
      } else {
        values[at] = Value{};
        valid[at >> 3] = static_cast<uint8_t>(valid[at >> 3] & ~(1 << (at & 7)));
      }
    }
  }

  ColumnPages& pages_;  // the reader's
  const std::shared_ptr<parquet::TypedColumnReader<ParquetType>> reader_;
  const DType dtype_;
  const int16_t present_;                    // the definition level of a value that is not null
  std::vector<int16_t> levels_;              // scratch memory
  int64_t left_ = 0;                         // rows of the current page ...
  std::optional<ColumnPages::Plain> plain_;  // ... which the reader has, unless this does
};

}  // namespace

bool NumberColumn::Reads(const parquet::ColumnDescriptor& column, const arrow::DataType& type) {
  if (column.max_repetition_level() > 0) return false;
  switch (column.physical_type()) {
    case parquet::Type::BOOLEAN: return type.id() == arrow::Type::BOOL;
    case parquet::Type::FLOAT: return type.id() == arrow::Type::FLOAT;
    case parquet::Type::DOUBLE: return type.id() == arrow::Type::DOUBLE;
    case parquet::Type::INT32:
      return (arrow::is_integer(type.id()) && type.byte_width() <= 4) || type.id() == arrow::Type::DATE32 ||
             type.id() == arrow::Type::TIME32;
    case parquet::Type::INT64:
      return type.id() == arrow::Type::INT64 || type.id() == arrow::Type::UINT64 ||
             type.id() == arrow::Type::TIMESTAMP || type.id() == arrow::Type::TIME64 ||
             type.id() == arrow::Type::DURATION;
    default: return false;
  }
}

std::unique_ptr<NumberColumn> NumberColumn::Make(parquet::RowGroupReader* group, int column,
                                                 const arrow::DataType& type) {
  const parquet::ColumnDescriptor* const is = group->metadata()->schema()->Column(column);
  // Pages that were compressed share their memory.
  const bool stay = group->metadata()->ColumnChunk(column)->compression() == parquet::Compression::UNCOMPRESSED;
  const auto make = [&](auto stored, DType dtype) -> std::unique_ptr<NumberColumn> {
    return std::make_unique<TypedColumn<decltype(stored)>>(group->GetColumnPageReader(column), is, stay, dtype);
  };
  const bool is_unsigned = type.id() == arrow::Type::UINT32 || type.id() == arrow::Type::UINT64;
  switch (is->physical_type()) {
    case parquet::Type::BOOLEAN: return make(parquet::BooleanType(), DType::kBool);
    case parquet::Type::FLOAT: return make(parquet::FloatType(), DType::kFloat32);
    case parquet::Type::DOUBLE: return make(parquet::DoubleType(), DType::kFloat64);
    case parquet::Type::INT32: return make(parquet::Int32Type(), is_unsigned ? DType::kUint32 : DType::kInt32);
    default: return make(parquet::Int64Type(), is_unsigned ? DType::kUint64 : DType::kInt64);
  }
}

}  // namespace headrace::side
