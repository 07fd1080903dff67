// Arrow's types and arrays as columns of ours. Compiled into libheadrace_arrow.so only.
#pragma once

#include <arrow/array.h>
#include <arrow/memory_pool.h>
#include <arrow/type.h>

#include <memory>
#include <span>
#include <vector>

#include "sidecar/source/columns_file.h"

namespace headrace::side {

// Arrow's memory, of which no single piece is larger than 1 GiB: more is asked for by damaged files, and as long as it
// is not there an honest one is told so (OutOfMemory, which FromArrow makes Exhausted). Any thread.
arrow::MemoryPool* ArrowMemory();

// Memory that the block keeps.
arrow::Result<uint8_t*> MakeMemory(int64_t bytes, ColumnsBlock* block);

// A column of a schema.
struct SchemaColumn {
  FileColumn column;
  std::vector<int> path;  // the field of the schema, then the fields of the structs within
  std::shared_ptr<arrow::DataType> type;
};
// All of them in order; for a struct the columns within it.
std::vector<SchemaColumn> ColumnsOf(const arrow::Schema& schema);

// Appends the view of `array`, a column of a batch whose first field is that of `path[0]`, to the block's columns, and
// what it views to what the block keeps. REQUIRES: its column is offered.
arrow::Status AddColumn(const std::shared_ptr<arrow::Array>& array, std::span<const int> path_within,
                        ColumnsBlock* block);

}  // namespace headrace::side
