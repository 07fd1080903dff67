// Keeps the memory of records that a shuffle mixes near what they take.
//
// A block stays until the last of its records has left the buffer. Of k records that leave at random the last one stays
// about ln k times as long as the average one: blocks of 256 records would take six times their records' memory. So
// records of blocks of which less than half is left are copied together, which bounds it to about two and a half times
// and copies a third of the records.
#pragma once

#include "sidecar/core/bytes_block.h"

namespace headrace::side {

class CompactBlock;

// Used by the thread that uses the pool, which must outlive it.
class Compaction {
 public:
  // Blocks may take `spare_bytes` before anything is copied: small buffers do without.
  static constexpr size_t kSpareBytes = 64 << 20;
  explicit Compaction(BytesBlockPool* pool, size_t spare_bytes = kSpareBytes)
      : pool_(*pool), spare_bytes_(spare_bytes) {}

  // To be called for the records of the buffer one after another, round and round, once for each that leaves it.
  void Visit(Record* record) {
    if (pool_.live_bytes() < spare_bytes_ || !record->block) return;
    BytesBlock* const block = record->block->bytes_block();
    if (block != nullptr && 2 * static_cast<int64_t>(block->references()) < block->rows()) Move(block, record);
  }

 private:
  void Move(BytesBlock* from, Record* record);

  BytesBlockPool& pool_;
  const size_t spare_bytes_;
  CompactBlock* open_ = nullptr;  // that is being filled
  BlockRef held_;                 // it
};

}  // namespace headrace::side
