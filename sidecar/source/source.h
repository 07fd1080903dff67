// What every source shares, and what a file format is.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "common/spec/plan.h"
#include "sidecar/core/bytes_block.h"
#include "sidecar/core/dataset.h"
#include "sidecar/core/indexed.h"
#include "sidecar/decode/decoder.h"
#include "sidecar/source/byte_stream.h"
#include "sidecar/source/file_table.h"
#include "sidecar/source/quarantine.h"
#include "sidecar/transform/table.h"

namespace headrace::side {

struct Format;
class Framer;
class StoredBlock;

// Outlives every data set and stream of a loader.
struct SourceContext {
  SourceContext();
  ~SourceContext();

  const InputSpec* spec = nullptr;  // whose source these files are
  const Format* format = nullptr;
  FileTable files;
  Compression compression = Compression::kAuto;
  BytesBlockPool blocks;
  Quarantine quarantine;
  std::atomic<uint64_t> bytes_read{0};
  // Whether records of framed files are read by their numbers, by those who decode them. Where they lie is remembered
  // while a file is read through, or kept beside it.
  enum class ByNumber {
    kNever,
    kInMemory,  // where the file is known already, and lies in memory: many threads read what one read ahead for them
    kAlways,    // what is not delivered shall not be read
  };
  ByNumber by_number = ByNumber::kNever;
  bool mixed = false;  // whether records that are neighbours in a file leave the pipeline apart

  // The records of a file by number; of a framed format, the whole file is read for that if they are not known.
  Result<StoredBlock*> Stored(const Format& format, uint32_t file);
  // The same, or nullptr if they are not known.
  Result<StoredBlock*> FindStored(const Format& format, uint32_t file);
  // Those of a framed file that was read through and is in memory now; nullptr: it is to be read through.
  Result<StoredBlock*> StoredInMemory(uint32_t file);
  // Whether it is to be remembered where the records of a file lie that is about to be read through.
  bool Remembers(uint32_t file) const;
  // Takes the offsets of a RecordIndex of a file that was read to its end; unless they are too many to be kept.
  void KeepIndex(uint32_t file, std::vector<uint64_t> offsets);
  // 128 MiB, and where reading through will do 32 MiB.
  uint64_t most_indexed_records() const { return by_number == ByNumber::kAlways ? 16 << 20 : 4 << 20; }

  // Columns for BytesBlock::Origin::columns to refer to. Any thread.
  const std::vector<int32_t>* KeepColumns(std::vector<int32_t> columns);

 private:
  uint64_t indexed_records_ = 0;  // by KeepIndex
  size_t indexed_files_ = 0;      // ... of so many files
  std::vector<bool> looked_for_;  // by file: whether there is an index beside it
  std::mutex columns_mutex_;
  std::set<std::vector<int32_t>> column_orders_;
  std::vector<std::unique_ptr<StoredBlock>> stored_;  // by file
};

// A file format: one file in this folder and one line in table.cc.
struct Format {
  // Decodes its records into the features.
  std::unique_ptr<Decoder> (*decoder)(const InputSpec& spec);
  // Framed formats: finds the records in a file's bytes. Others have `open`.
  std::unique_ptr<Framer> (*framer)(SourceContext& context) = nullptr;
  // ... by a few bytes of each, so that finding them again costs next to nothing.
  bool says_lengths = false;
  // Opens one file of `context.files` as a stream of its records.
  Result<std::unique_ptr<Stream<Record>>> (*open)(SourceContext& context, uint32_t file) = nullptr;
  // Finds where each record of a file is, without reading it.
  Result<std::unique_ptr<StoredBlock>> (*index)(SourceContext& context, uint32_t file) = nullptr;
  // Each file says first which columns it has.
  bool headers = false;
  // What spec.features are if they were left out, by a file of `context.files`; null: a record is a string of bytes.
  Result<std::vector<Feature>> (*features)(SourceContext& context, uint32_t file) = nullptr;
};
const Format& FormatOf(FileFormat format);
// Opens one file of `context.files`, in the way of its format.
Result<std::unique_ptr<Stream<Record>>> OpenRecords(const Format& format, SourceContext& context, uint32_t file);

// Gives a spec that leaves its features to the files those of the first of `files`. Does nothing for any other
// spec. Errors: InvalidArgument where the pipeline does not go with them; those of the file.
Status FillFeatures(InputSpec* spec, const FileTable& files);

// Which files this worker reads, in order: all of them, or under policy File every num_workers-th.
DatasetPtr<File> MakeFileList(const Plan& plan, const TransformContext& transform, const SourceContext& context);
// The records of `files`, file after file, or interleaved: cycle_length files visited in turn for block_length records.
DatasetPtr<Record> ReadFiles(DatasetPtr<File> files, const Interleave& interleave, const Format& format,
                             SourceContext* context);

std::unique_ptr<const IndexedDataset> MakeRange(const RangeSource& source);
// Rows 0 .. n-1 by number; decode/simple.cc knows their values.
std::unique_ptr<const IndexedDataset> MakeRows(int64_t count);

// Files that every worker must have at least one of: Errors: InvalidArgument with both numbers if there are too few.
Status CheckFileCount(const Plan& plan, const TransformContext& transform, const SourceContext& context);
// Where files have headers, reads that of the first, so that columns that are not there are found before any trainer
// waits. Errors: as of reading.
Status CheckFirstHeader(const Plan& plan, const TransformContext& transform, SourceContext* context);

}  // namespace headrace::side
