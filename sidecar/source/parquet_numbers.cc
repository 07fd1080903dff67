// Arrow's own readers make a bitmap of each column's nulls, whether it has any or not, which costs as much as all the
// rest of it.
#include "sidecar/source/parquet_numbers.h"

#include <parquet/exception.h>
#include <parquet/types.h>

#include <cstring>

#include "sidecar/source/arrow_columns.h"

namespace headrace::side {
namespace {

uint8_t* KeptMemory(int64_t bytes, ColumnsBlock* block) {
  PARQUET_ASSIGN_OR_THROW(uint8_t* const memory, MakeMemory(bytes, block));
  return memory;
}

template <typename ParquetType>
class TypedColumn : public NumberColumn {
 public:
  TypedColumn(std::shared_ptr<parquet::ColumnReader> reader, DType dtype)
      : reader_(std::static_pointer_cast<parquet::TypedColumnReader<ParquetType>>(std::move(reader))),
        dtype_(dtype),
        present_(reader_->descr()->max_definition_level()) {}

  void Skip(int64_t rows) override {
    while (rows > 0) {
      const int64_t skipped = reader_->Skip(rows);
      if (skipped <= 0) throw Ended();
      rows -= skipped;
    }
  }

  void Read(int64_t rows, std::vector<int16_t>* levels, ColumnsBlock* block) override {
    if (levels->size() < static_cast<size_t>(rows)) levels->resize(static_cast<size_t>(rows));
    auto* const values = reinterpret_cast<Value*>(KeptMemory(rows * static_cast<int64_t>(sizeof(Value)), block));
    uint8_t* valid = nullptr;
    for (int64_t row = 0; row < rows;) {
      int64_t there = 0;
      const int64_t read =
          reader_->ReadBatch(rows - row, present_ > 0 ? levels->data() : nullptr, nullptr, values + row, &there);
      if (read <= 0 || there > read) throw Ended();
      if (there < read && valid == nullptr) {
        valid = KeptMemory((rows + 7) / 8, block);
        std::memset(valid, 0xff, static_cast<size_t>((rows + 7) / 8));
      }
      if (there < read) Spread(values, row, read, there, *levels, valid);
      row += read;
    }
    ColumnView view;
    view.dtype = dtype_;
    view.rows = ColumnView::Rows::kFixed;
    view.values = reinterpret_cast<const uint8_t*>(values);
    view.valid = valid;
    block->columns.push_back(view);
  }

 private:
  using Value = typename ParquetType::c_type;

  parquet::ParquetException Ended() const {
    return parquet::ParquetException("column \"" + reader_->descr()->path()->ToDotString() +
                                     "\" has fewer values than its row group has rows");
  }

  // Moves `there` values, which were read one after another to values[row], to the rows of `read` that have one.
  void Spread(Value* values, int64_t row, int64_t read, int64_t there, const std::vector<int16_t>& levels,
              uint8_t* valid) const {
    for (int64_t i = read; i-- > 0;) {
      const int64_t at = row + i;
      if (levels[static_cast<size_t>(i)] == present_) {
        if (there == 0) throw Ended();
        values[at] = values[row + --there];
      } else {
        values[at] = Value{};
        valid[at >> 3] = static_cast<uint8_t>(valid[at >> 3] & ~(1 << (at & 7)));
      }
    }
  }

  const std::shared_ptr<parquet::TypedColumnReader<ParquetType>> reader_;
  const DType dtype_;
  const int16_t present_;  // the definition level of a value that is not null
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

std::unique_ptr<NumberColumn> NumberColumn::Make(std::shared_ptr<parquet::ColumnReader> reader,
                                                 const arrow::DataType& type) {
  switch (reader->type()) {
    case parquet::Type::BOOLEAN:
      return std::make_unique<TypedColumn<parquet::BooleanType>>(std::move(reader), DType::kBool);
    case parquet::Type::FLOAT:
      return std::make_unique<TypedColumn<parquet::FloatType>>(std::move(reader), DType::kFloat32);
    case parquet::Type::DOUBLE:
      return std::make_unique<TypedColumn<parquet::DoubleType>>(std::move(reader), DType::kFloat64);
    case parquet::Type::INT32: {
      const DType dtype = type.id() == arrow::Type::UINT32 ? DType::kUint32 : DType::kInt32;
      return std::make_unique<TypedColumn<parquet::Int32Type>>(std::move(reader), dtype);
    }
    default: {
      const DType dtype = type.id() == arrow::Type::UINT64 ? DType::kUint64 : DType::kInt64;
      return std::make_unique<TypedColumn<parquet::Int64Type>>(std::move(reader), dtype);
    }
  }
}

}  // namespace headrace::side
