// The bytes of one file in order, decompressed.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/spec/input_spec.h"
#include "sidecar/source/file_table.h"

namespace headrace::side {

// All of it is in this header: the module that reads Arrow's formats has no other part of the loader.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Reads up to n bytes into out; 0 is the end of the file. Errors name the file and the offset.
  virtual Result<size_t> Read(uint8_t* out, size_t n) = 0;
  // Passes over the next n bytes, without reading them where the file is not compressed. REQUIRES: they are there, by
  // size(), or may not be: then what Read returns next is 0.
  virtual Status PassOver(uint64_t n) {
    std::vector<uint8_t> dropped(std::min<uint64_t>(n, 256 << 10));
    while (n > 0) {
      ASSIGN_OR_RETURN(const size_t read, Read(dropped.data(), std::min<uint64_t>(n, dropped.size())));
      if (read == 0) break;
      n -= read;
    }
    return {};
  }
  // Bytes of the whole (decompressed) file, where that is known without reading on.
  virtual std::optional<uint64_t> size() const = 0;
  // Whether these are the file's bytes as they are stored. Known once something was read.
  virtual bool plain() const { return false; }
};

// Opens a file of the table; kAuto looks at the first bytes. A remote file is on its way from then on, and waited for
// by the first Read. `bytes_read` counts what is read from storage and must outlive the stream. Errors: NotFound,
// Unavailable; Corrupt if the compression asked for is not the file's, here or at the first Read.
Result<std::unique_ptr<ByteStream>> OpenByteStream(const FileTable& files, size_t file, Compression compression,
                                                   std::atomic<uint64_t>* bytes_read);

}  // namespace headrace::side
