#include "sidecar/core/bytes_block.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace headrace::side {

std::string BytesBlock::Place(int64_t row) const {
  const std::string begin = *origin.path + ": ";
  if (origin.first_line == 0) return begin + "record at byte " + std::to_string(PlaceOf(row).offset);
  // Counted here, where somebody wants to know: records may be several lines, or have empty ones between them.
  const uint8_t* const first_field = Bytes(row).data();
  const auto lines = static_cast<uint64_t>(std::count(static_cast<const uint8_t*>(data_), first_field, '\n'));
  return begin + "line " + std::to_string(origin.first_line + lines);
}

BytesBlockPool::~BytesBlockPool() {
  for (void* const slab : slabs_) std::free(slab);
}

BytesBlock* BytesBlockPool::Get(size_t bytes) {
  live_bytes_ += std::max(bytes, kUsualBytes);
  if (bytes > kUsualBytes) return new BytesBlock(this, new uint8_t[bytes + BytesBlock::kPadding], bytes);
  if (kept_.empty()) AddSlab();
  BytesBlock* const block = kept_.back().release();
  kept_.pop_back();
  return block;
}

void BytesBlockPool::AddSlab() {
  auto* const slab = static_cast<uint8_t*>(std::aligned_alloc(kSlabBytes, kSlabBytes));
  if (slab == nullptr) throw std::bad_alloc();
  madvise(slab, kSlabBytes, MADV_HUGEPAGE);  // a kernel without them gives small ones
  slabs_.push_back(slab);
  for (size_t i = kBlocksPerSlab; i > 0; --i) {
    uint8_t* const data = slab + (i - 1) * (kUsualBytes + BytesBlock::kPadding);
    kept_.push_back(std::unique_ptr<BytesBlock>(new BytesBlock(this, data, kUsualBytes)));
  }
}

void BytesBlockPool::Return(BytesBlock* block) {
  std::unique_ptr<BytesBlock> owned(block);
  live_bytes_ -= block->capacity_;
  if (block->capacity_ != kUsualBytes) {
    delete[] block->data_;
    return;
  }
  block->extents_.clear();
  kept_.push_back(std::move(owned));
}

}  // namespace headrace::side
