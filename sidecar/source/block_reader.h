// Reads a file whose records are bytes, block by block.
#pragma once

#include <memory>

#include "sidecar/core/bytes_block.h"
#include "sidecar/source/source.h"

namespace headrace::side {

// Finds the records of one file in its bytes: what a format brings. One object a file; called in the file's order.
class Framer {
 public:
  virtual ~Framer() = default;
  // Looks at block->data()[0, size), of which the first byte is that after those consumed by the last call, and Adds
  // the fields of the whole records there, setting block->origin's `before`, `first_line` and `fields` as it needs.
  // Returns how many bytes they take; 0 asks for more bytes, which come unless `last`, when what is left must be whole
  // records. Errors come after the records before them, and without "path: at byte N: ", which the caller adds:
  // FrameError says at which byte of the block.
  struct Outcome {
    size_t consumed = 0;
    Status error;       // Corrupt: where `consumed` ends is something that is no record
    size_t wanted = 0;  // at least, to find one more record; 0: unknown
  };
  virtual Outcome Frame(BytesBlock* block, size_t size, bool last) = 0;
};

// Stream of the records of `file`, one of `context.files`.
Result<std::unique_ptr<Stream<Record>>> ReadBlocks(SourceContext& context, uint32_t file,
                                                   std::unique_ptr<Framer> framer);

}  // namespace headrace::side
