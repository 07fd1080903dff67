// Which of a Parquet file's columns are read for those that were chosen, and by whom. Compiled into
// libheadrace_arrow.so only.
#pragma once

#include <parquet/arrow/schema.h>
#include <parquet/schema.h>

#include <memory>
#include <vector>

#include "sidecar/source/arrow_columns.h"

namespace headrace::side {

// Parquet stores the leaves of its schema's tree, each as a column of its own.
struct ParquetLeaves {
  struct Column {
    std::shared_ptr<arrow::DataType> type;
    int number = -1;               // the leaf, if NumberColumn reads it
    int batch_column = -1;         // if not: in Arrow's batches of `by_arrow` ...
    std::vector<int> path_within;  // ... and the fields of the structs within
  };
  std::vector<Column> columns;  // as they were chosen
  std::vector<int> all;         // leaves, ascending
  std::vector<int> by_arrow;    // those of them that Arrow reads
};

ParquetLeaves LeavesOf(const parquet::SchemaDescriptor& schema, const parquet::arrow::SchemaManifest& manifest,
                       const std::vector<SchemaColumn>& chosen);

}  // namespace headrace::side
