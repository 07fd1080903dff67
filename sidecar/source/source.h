// What every source shares, and what a file format is.
#pragma once

#include <atomic>
#include <memory>
#include <set>
#include <vector>

#include "common/spec/plan.h"
#include "sidecar/core/bytes_block.h"
#include "sidecar/core/dataset.h"
#include "sidecar/decode/decoder.h"
#include "sidecar/source/byte_stream.h"
#include "sidecar/source/file_table.h"
#include "sidecar/transform/table.h"

namespace headrace::side {

// Outlives every data set and stream of a loader.
struct SourceContext {
  const InputSpec* spec = nullptr;  // whose source these files are
  FileTable files;
  Compression compression = Compression::kAuto;
  BytesBlockPool blocks;
  std::atomic<uint64_t> bytes_read{0};
  std::set<std::vector<int32_t>> column_orders;  // that blocks refer to (BytesBlock::Origin::columns)
};

// A file format: one file in this folder and one line in table.cc.
struct Format {
  // Opens one file of `context.files` as a stream of its records.
  Result<std::unique_ptr<Stream<Record>>> (*open)(SourceContext& context, uint32_t file);
  // Decodes its records into the features.
  std::unique_ptr<Decoder> (*decoder)(const InputSpec& spec);
};
const Format& FormatOf(FileFormat format);

// Which files this worker reads, in order: all of them, or under policy File every num_workers-th.
DatasetPtr<File> MakeFileList(const Plan& plan, const TransformContext& transform, const SourceContext& context);
// The records of `files`, file after file, or interleaved: cycle_length files visited in turn for block_length records.
DatasetPtr<Record> ReadFiles(DatasetPtr<File> files, const Interleave& interleave, const Format& format,
                             SourceContext* context);

DatasetPtr<Record> MakeRange(const RangeSource& source);
// Rows 0 .. n-1 by number; decode/tensors.cc knows their values.
DatasetPtr<Record> MakeRows(int64_t count);

// Files that every worker must have at least one of: Errors: InvalidArgument with both numbers if there are too few.
Status CheckFileCount(const Plan& plan, const TransformContext& transform, const SourceContext& context);

}  // namespace headrace::side
