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
    int number = -1;               // of `numbers`; or
    int field = -1;                // of `fields` ...
    std::vector<int> path_within;  // ... and then the fields of the structs within, of those that are read
  };
  // A leaf that NumberColumn reads, and what Arrow would have it as.
  struct Number {
    int leaf = 0;
    std::shared_ptr<arrow::DataType> type;
  };
  std::vector<Column> columns;  // as they were chosen
  std::vector<int> all;         // leaves, ascending
  std::vector<Number> numbers;
  std::vector<std::vector<int>> fields;  // the others of them, of each of the schema's fields, ascending
};

ParquetLeaves LeavesOf(const parquet::SchemaDescriptor& schema, const parquet::arrow::SchemaManifest& manifest,
                       const std::vector<SchemaColumn>& chosen);

}  // namespace headrace::side
