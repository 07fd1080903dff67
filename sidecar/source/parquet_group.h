// One row group of a Parquet file, all of whose columns are read side by side. Compiled into libheadrace_arrow.so only.
#pragma once

#include <arrow/record_batch.h>
#include <parquet/arrow/reader.h>
#include <parquet/exception.h>

#include <functional>
#include <memory>
#include <vector>

#include "sidecar/core/columns_block.h"
#include "sidecar/source/arrow_file.h"
#include "sidecar/source/parquet_leaves.h"
#include "sidecar/source/parquet_numbers.h"

namespace headrace::side {

// Used by one thread at a time; several columns are decoded by several threads meanwhile. Errors: those of Arrow's
// readers.
class ParquetGroup {
 public:
  // Row group `index` of `file`, which has rows. The file and `leaves` outlive it. Throws what Parquet's readers throw.
  ParquetGroup(parquet::arrow::FileReader* file, const ParquetLeaves* leaves, int index);

  int index() const { return index_; }
  int64_t next() const { return next_; }  // the row that the next block begins with
  int64_t left() const { return rows_ - next_; }

  // Passes over the next rows. REQUIRES: rows <= left().
  arrow::Status Skip(int64_t rows);
  // The next rows. REQUIRES: left() > 0.
  arrow::Status Read(ColumnsBlock* block);

 private:
  // Columns that Arrow reads together, since they lie within one of the schema's fields.
  struct Field {
    std::unique_ptr<arrow::RecordBatchReader> reader;
    std::shared_ptr<arrow::RecordBatch> batch;  // what is left of the last
  };

  // Whatever is read of its own: a column of numbers, or one of the fields.
  size_t parts() const { return numbers_.size() + fields_.size(); }
  bool HasRow(size_t part) const;
  // Calls fn with each of them: in several threads, where there is enough to do for these.
  arrow::Status ForEach(const std::vector<size_t>& all, const std::function<arrow::Status(size_t)>& fn) const;
  // Makes the next row of a part be at hand.
  arrow::Status HaveRow(size_t part);
  arrow::Status HaveRows();
  arrow::Status SkipPart(size_t part, int64_t rows);
  // How many of the next rows make a block.
  int64_t RowsOfBlock() const;
  // Appends column `column` of the next rows.
  arrow::Status ReadColumn(size_t column, int64_t rows, ColumnsBlock* block);

  parquet::arrow::FileReader& file_;
  const ParquetLeaves& leaves_;
  const int index_;
  const std::shared_ptr<parquet::RowGroupReader> group_;
  const int64_t rows_;
  int64_t block_rows_ = 0;  // of a block, at most
  bool worth_threads_ = false;
  int64_t next_ = 0;
  std::vector<std::unique_ptr<NumberColumn>> numbers_;  // as leaves_.numbers
  std::vector<Field> fields_;                           // as leaves_.fields
};

// Parquet's readers throw what Arrow's return.
template <typename Fn>
arrow::Status CaughtParquet(Fn fn) {
  return Caught([&]() -> arrow::Status {
    try {
      return fn();
    } catch (const parquet::ParquetStatusException& e) {
      return e.status();
    }
  });
}

}  // namespace headrace::side
