// Columns of numbers, one value a row, straight out of Parquet's pages. Compiled into libheadrace_arrow.so only.
#pragma once

#include <arrow/type.h>
#include <parquet/file_reader.h>

#include <memory>

#include "sidecar/core/columns_block.h"

namespace headrace::side {

// The rest of one column of a row group. Throws what Parquet's readers throw.
class NumberColumn {
 public:
  // Whether `column`, which Arrow would have as `type`, is read so.
  static bool Reads(const parquet::ColumnDescriptor& column, const arrow::DataType& type);
  // Reads column `column` of a row group. REQUIRES: Reads(that column, type).
  static std::unique_ptr<NumberColumn> Make(parquet::RowGroupReader* group, int column, const arrow::DataType& type);

  virtual ~NumberColumn() = default;
  // Whether the next row is at hand, as the rest of this page's are.
  virtual bool HasRow() const = 0;
  // Goes to the next page, if it is not.
  virtual void HaveRow() = 0;
  // Passes over the next rows, pages of them without decoding.
  virtual void Skip(int64_t rows) = 0;
  // As many of the next rows need no copy, because a page holds them as numbers one after another. REQUIRES: HasRow().
  virtual int64_t RowsAsTheyLie() const = 0;
  // Appends the next rows to the block's columns: where they lie, if these do, or as a copy.
  virtual void Read(int64_t rows, ColumnsBlock* block) = 0;
};

}  // namespace headrace::side
