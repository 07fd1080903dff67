// Bytes in order as Arrow's readers want them. Compiled into libheadrace_arrow.so only.
#pragma once

#include <arrow/io/interfaces.h>

#include <memory>

#include "sidecar/source/byte_stream.h"
#include "sidecar/source/storage.h"

namespace headrace::side {

// Reads `bytes` as a stream. What begins as an IPC file does is one behind its first eight bytes.
std::shared_ptr<arrow::io::InputStream> MakeArrowStream(std::unique_ptr<ByteStream> bytes);

// A remote file that is mostly read from its front to its back.
class OrderedFile : public arrow::io::RandomAccessFile {
 public:
  // From now on what is asked for in ascending order comes from bytes that were read ahead. Before, and backwards, each
  // read is one of storage.
  virtual void ReadAhead() = 0;
};
// `ahead` is the same file.
std::shared_ptr<OrderedFile> MakeOrderedFile(std::unique_ptr<StoredFile> file, std::unique_ptr<ByteStream> ahead);

}  // namespace headrace::side
