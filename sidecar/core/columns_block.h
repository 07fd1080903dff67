// Blocks of records that are rows of a table, column by column: what the readers of Parquet and Arrow make.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "common/spec/dtype.h"
#include "sidecar/core/bytes_block.h"
#include "sidecar/core/prefetch.h"
#include "sidecar/core/record.h"

namespace headrace::side {

// The values of one column for all rows of a block, in the type and the place in which they were read.
struct ColumnView {
  enum class Rows {
    kFixed,      // row r is the `unit` values that begin r * step() bytes behind `values`
    kOffsets32,  // row r is values[offsets[r] * unit, offsets[r + 1] * unit): a list, or with kString the bytes of one
    kOffsets64,  // the same with larger offsets
    kRefs,       // kString only: row r is the r-th BytesRef of values
    kNone,       // every row is null
  };
  DType dtype = DType::kUint8;
  Rows rows = Rows::kNone;
  int64_t unit = 1;                 // values; 1 where the rows are scalars or strings
  size_t stride = 0;                // kFixed: bytes from a row to the next; 0: they follow one another
  const uint8_t* values = nullptr;  // kRefs: aligned; else of any alignment; kString: of one byte each
  const void* offsets = nullptr;    // aligned; they rise, and end within the values
  // Bit `valid_bit` + r says that row r is not null; nullptr: none is.
  const uint8_t* valid = nullptr;
  int64_t valid_bit = 0;
  // Bit r says that a value within row r, which is not null itself, is null; nullptr: none is.
  const uint8_t* holes = nullptr;

  static bool Bit(const uint8_t* bits, int64_t at) { return ((bits[at >> 3] >> (at & 7)) & 1) != 0; }
  bool IsNull(int64_t row) const { return rows == Rows::kNone || (valid != nullptr && !Bit(valid, valid_bit + row)); }
  bool HasHole(int64_t row) const { return holes != nullptr && Bit(holes, row); }
  // In units.
  int64_t Offset(int64_t row) const {
    return rows == Rows::kOffsets32 ? static_cast<const int32_t*>(offsets)[row]
                                    : static_cast<const int64_t*>(offsets)[row];
  }
  // The bytes of a row's values. REQUIRES: !IsNull(row).
  BytesRef Row(int64_t row) const {
    if (rows == Rows::kRefs) {
      BytesRef ref;
      std::memcpy(&ref, values + static_cast<size_t>(row) * sizeof ref, sizeof ref);
      return ref;
    }
    if (rows == Rows::kFixed) return {values + static_cast<size_t>(row) * step(), row_bytes()};
    const int64_t begin = Offset(row);
    return {values + static_cast<size_t>(begin) * row_bytes(),
            static_cast<size_t>(Offset(row + 1) - begin) * row_bytes()};
  }
  // Of `unit` values; kFixed: of a row.
  size_t row_bytes() const { return static_cast<size_t>(unit) * (dtype == DType::kString ? 1 : DTypeSize(dtype)); }
  size_t step() const { return stride > 0 ? stride : row_bytes(); }
};

class ColumnsBlock : public Block {
 public:
  ~ColumnsBlock() override { CountOn(nullptr); }

  struct Origin {
    const std::string* path = nullptr;  // of the file; outlives the block
    std::string part;                   // of the file: "row group 3"
    int64_t first_row = 0;              // of the block, in the part
  };
  Origin origin;
  int64_t rows = 0;
  std::vector<ColumnView> columns;                 // those of one feature after another
  std::vector<std::shared_ptr<const void>> keeps;  // what they view
  size_t bytes = 0;                                // of that, about
  // Where the rows' kFixed columns lie side by side, in their order: the first row, and bytes from one to the next.
  const uint8_t* rows_begin = nullptr;
  size_t row_stride = 0;

  // Where a row was read; first_row is its own.
  virtual Origin OriginOf(int64_t row) const { return {origin.path, origin.part, origin.first_row + row}; }
  // The bytes of a row's values.
  size_t RowBytes(int64_t row) const {
    size_t bytes_of_row = 0;
    for (const ColumnView& column : columns) bytes_of_row += column.IsNull(row) ? 0 : column.Row(row).size;
    return bytes_of_row;
  }
  // Counts its memory among the pool's live bytes as long as it is there. By the thread that drops it.
  void CountOn(BytesBlockPool* pool) {
    if (counted_on_ != nullptr) counted_on_->Count(-static_cast<int64_t>(bytes));
    counted_on_ = pool;
    if (counted_on_ != nullptr) counted_on_->Count(static_cast<int64_t>(bytes));
  }

  std::span<const uint8_t> Bytes(int64_t, size_t) const override { return {}; }
  ColumnsBlock* columns_block() override { return this; }
  void Prefetch(int64_t row) const override {
    if (rows_begin != nullptr) PrefetchBytes(rows_begin + static_cast<size_t>(row) * row_stride, row_stride);
  }
  size_t memory() const override { return bytes; }
  std::string Place(int64_t row) const override {
    const Origin is = OriginOf(row);
    return *is.path + ": " + is.part + ", row " + std::to_string(is.first_row);
  }

 private:
  void Dropped() override { delete this; }

  BytesBlockPool* counted_on_ = nullptr;
};

}  // namespace headrace::side
