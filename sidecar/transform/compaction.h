// Keeps the memory of records that a shuffle mixes near what they take.
//
// A block stays until the last of its records has left the buffer. Of k records that leave at random the last one stays
// about ln k times as long as the average one: blocks of 256 records would take six times their records' memory. So
// records of blocks of which less than half is left are copied together, which bounds it to about two and a half times
// and copies a third of the records.
#pragma once

#include <span>
#include <vector>

#include "sidecar/core/bytes_block.h"

namespace headrace::side {

// Used by the thread that uses the pool, which must outlive it and its blocks.
class Compaction {
 public:
  // Blocks may take so many bytes before anything is copied: small buffers do without.
  static constexpr size_t kSpareBytes = 64 << 20;
  // How many records of the buffer are looked at together.
  static constexpr size_t kSweep = 1024;

  explicit Compaction(BytesBlockPool* pool) : pool_(*pool) {}

  // To be called for one part of the buffer after another, round and round, as many records as have left it.
  void Sweep(std::span<Record> records);

 private:
  // Moves sparse_, which are of one kind and take `bytes`, to a block of their own, which is whole before any of them
  // can leave: other threads may then decode them. Clears it.
  void MoveTogether(size_t bytes);
  Block* MoveBytes(size_t bytes);
  Block* MoveRows();

  BytesBlockPool& pool_;
  std::vector<Record*> sparse_;  // of a sweep, those that are to be moved
};

}  // namespace headrace::side
