// Memory for values that a decoder makes and others read: taken piece by piece, given back all at once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace headrace::side {

class Arena {
 public:
  // Aligned for any value. Valid until Reset.
  uint8_t* Take(size_t bytes) {
    bytes = (bytes + kAlign - 1) / kAlign * kAlign;
    while (used_ < chunks_.size() && chunks_[used_].size - at_ < bytes) {
      ++used_;
      at_ = 0;
    }
    if (used_ == chunks_.size()) {
      const size_t size = std::max(bytes, kChunkBytes);
      chunks_.push_back({std::make_unique<uint8_t[]>(size), size});
    }
    uint8_t* const taken = chunks_[used_].memory.get() + at_;
    at_ += bytes;
    return taken;
  }
  // Keeps its memory for the next round.
  void Reset() { used_ = at_ = 0; }

 private:
  static constexpr size_t kAlign = 16;
  static constexpr size_t kChunkBytes = 64 << 10;
  struct Chunk {
    std::unique_ptr<uint8_t[]> memory;
    size_t size = 0;
  };
  std::vector<Chunk> chunks_;
  size_t used_ = 0;  // the chunk that is taken from
  size_t at_ = 0;    // its first free byte
};

}  // namespace headrace::side
