// A file of columns, whoever reads it: Parquet and Arrow IPC are read by the module libheadrace_arrow.so.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/spec/dtype.h"
#include "sidecar/core/columns_block.h"
#include "sidecar/source/byte_stream.h"
#include "sidecar/source/storage.h"

namespace headrace::side {

// A column as the file declares it. One within another has a name of both, "a.b".
struct FileColumn {
  std::string name;
  std::string type;      // in the file's terms: "list<item: float>"
  bool offered = false;  // whether it can be read, and the rest is known
  bool empty = false;    // of a type without values: all of its rows are null
  DType dtype = DType::kUint8;
  std::vector<int64_t> shape;  // of one row; -1, as the first, where it differs from row to row
};

// One open file, read from its first row to its last. Used by one thread at a time. Errors: Corrupt, naming the file
// and the part of it; those of storage as they are; Exhausted where something takes absurdly much memory.
class ColumnsFile {
 public:
  virtual ~ColumnsFile() = default;
  virtual const std::vector<FileColumn>& columns() const = 0;
  // Which of columns(), in which order, blocks shall hold; one may stand several times. Called once, before the rest.
  // REQUIRES: they are offered.
  virtual Status Choose(const std::vector<size_t>& columns) = 0;
  // The next rows, some ten thousands of them if they are small, as a block; nullptr at the end, and then again.
  virtual Result<std::unique_ptr<ColumnsBlock>> Next() = 0;
  // Passes over the next rows and returns how many there were; fewer than `rows` is the end. Parts of the file that
  // hold no others are not read, as far as the format says how many rows they have.
  virtual Result<uint64_t> PassOver(uint64_t rows) = 0;
};

// How files are opened. `path` is for messages, and outlives the file and its blocks.
struct ColumnsReaders {
  Result<std::unique_ptr<ColumnsFile>> (*parquet)(std::unique_ptr<StoredFile> file, const std::string* path);
  // The IPC file format, with a footer. `ahead` is the same file's bytes, if a read of storage costs a round trip.
  Result<std::unique_ptr<ColumnsFile>> (*arrow_file)(std::unique_ptr<StoredFile> file,
                                                     std::unique_ptr<ByteStream> ahead, const std::string* path);
  // The IPC stream format, and the file format as well.
  Result<std::unique_ptr<ColumnsFile>> (*arrow_stream)(std::unique_ptr<ByteStream> bytes, const std::string* path);
};

}  // namespace headrace::side
