// Records that refer to blocks without being counted, for decoders: the counts belong to the thread that reads ahead.
#pragma once

#include <span>
#include <vector>

#include "sidecar/core/record.h"

namespace headrace::side {

// Whoever fills it sees to it that the blocks outlive it, or are there until Clear.
class Uncounted {
 public:
  Uncounted() = default;
  Uncounted(const Uncounted&) = delete;
  Uncounted& operator=(const Uncounted&) = delete;
  ~Uncounted() { Clear(); }
  void Clear() {
    for (Record& record : records_) record.block.Forget();
    records_.clear();
  }
  void Add(Block* block, int64_t row, int64_t index) {
    Record& record = records_.emplace_back();
    record.block = BlockRef::Uncounted(block);
    record.value = row;
    record.index = index;
  }
  std::span<const Record> all() const { return records_; }

 private:
  std::vector<Record> records_;
};

}  // namespace headrace::side
