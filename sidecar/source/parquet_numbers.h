// Columns of numbers, one value a row, straight out of Parquet's pages. Compiled into libheadrace_arrow.so only.
#pragma once

#include <arrow/type.h>
#include <parquet/column_reader.h>

#include <memory>
#include <vector>

#include "sidecar/core/columns_block.h"

namespace headrace::side {

// The rest of one column of a row group. Throws what Parquet's readers throw.
class NumberColumn {
 public:
  // Whether `column`, which Arrow would have as `type`, is read so.
  static bool Reads(const parquet::ColumnDescriptor& column, const arrow::DataType& type);
  // REQUIRES: Reads(*reader->descr(), type).
  static std::unique_ptr<NumberColumn> Make(std::shared_ptr<parquet::ColumnReader> reader, const arrow::DataType& type);

  virtual ~NumberColumn() = default;
  // Passes over the next rows, pages of them without decoding.
  virtual void Skip(int64_t rows) = 0;
  // Appends the next rows to the block's columns. `levels` is scratch memory.
  virtual void Read(int64_t rows, std::vector<int16_t>* levels, ColumnsBlock* block) = 0;
};

}  // namespace headrace::side
