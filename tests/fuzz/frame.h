// Records of bytes as a format's framer finds them, in blocks as small as a fuzzer likes.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "sidecar/source/block_reader.h"

namespace headrace::fuzz {

struct Framed {
  std::vector<side::Record> records;
  Status error;  // why there are no more
};

// As ReadBlocks does with a file of these bytes, but a block begins with `step` bytes. `pool` outlives the result.
inline Framed FrameAll(side::Framer* framer, side::BytesBlockPool* pool, std::string_view bytes, size_t step) {
  static const std::string path = "fuzz";
  Framed all;
  size_t at = 0;
  size_t wanted = step;
  while (at < bytes.size()) {
    side::BytesBlock* const block = pool->Get(wanted);
    const side::BlockRef held(block);
    block->origin = {&path, at};
    const size_t size = std::min(wanted, bytes.size() - at);
    std::memcpy(block->data(), bytes.data() + at, size);
    const side::Framer::Outcome outcome = framer->Frame(block, size, at + size == bytes.size());
    for (int64_t row = 0; row < block->rows(); ++row) {
      side::Record& record = all.records.emplace_back();
      record.block = held;
      record.value = row;
    }
    at += outcome.consumed;
    if (!outcome.error.ok()) {
      all.error = outcome.error;
      return all;
    }
    // More of the same record, as long as none is whole.
    wanted = outcome.consumed == 0 ? 2 * wanted : step;
  }
  return all;
}

}  // namespace headrace::fuzz
