// Blocks of records that are bytes: what the readers of TFRecord, lines, tar and their like make.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sidecar/core/prefetch.h"
#include "sidecar/core/record.h"

namespace headrace::side {

class BytesBlockPool;

class BytesBlock : public Block {
 public:
  // Parsers may read this many bytes beyond the last record, whatever lies there.
  static constexpr size_t kPadding = 64;

  // Where its records come from; set by those who fill it.
  struct Origin {
    const std::string* path = nullptr;  // of the file; outlives the block
    uint64_t offset = 0;                // of data()[0] in the uncompressed file
    size_t before = 0;                  // bytes of a record before its first field
    size_t after = 0;                   // ... and after the last one
    uint64_t first_line = 0;            // the number of data()[0]'s line, from 1; 0: places are told by offset
    size_t fields = 1;                  // of a record
    // Where the format's files may order their columns each as they like: which of those that are decoded each column
    // of this file is, or -1. Outlives the block.
    const std::vector<int32_t>* columns = nullptr;
  };
  Origin origin;

  std::span<const uint8_t> Bytes(int64_t row, size_t field = 0) const override {
    const Extent& extent = extents_[static_cast<size_t>(row) * origin.fields + field];
    return {data_ + extent.begin, extent.size};
  }
  void PrefetchPlace(int64_t row) const override {
    __builtin_prefetch(&extents_[static_cast<size_t>(row) * origin.fields]);
  }
  void Prefetch(int64_t row) const override {
    const Extent& extent = extents_[static_cast<size_t>(row) * origin.fields];
    PrefetchBytes(data_ + extent.begin, extent.size + origin.after);
  }
  // The record with what is before and after its fields.
  std::span<const uint8_t> Whole(int64_t row) const {
    const Extent& first = extents_[static_cast<size_t>(row) * origin.fields];
    const Extent& last = extents_[static_cast<size_t>(row + 1) * origin.fields - 1];
    return {data_ + first.begin - origin.before, data_ + last.begin + last.size + origin.after};
  }
  BytesBlock* bytes_block() override { return this; }
  size_t memory() const override { return capacity_ + extents_.capacity() * sizeof(Extent); }
  // Where a record begins in the uncompressed file.
  struct FilePlace {
    const std::string* path = nullptr;
    uint64_t offset = 0;
  };
  virtual FilePlace PlaceOf(int64_t row) const {
    const size_t begin = extents_[static_cast<size_t>(row) * origin.fields].begin;
    return {origin.path, origin.offset + begin - origin.before};
  }
  std::string Place(int64_t row) const override;

  // ---- For those who fill it.
  uint8_t* data() { return data_; }
  const uint8_t* data() const { return data_; }
  size_t capacity() const { return capacity_; }
  int64_t rows() const { return static_cast<int64_t>(extents_.size() / origin.fields); }
  // Adds a field, in the order of rows and of fields within a row.
  void Add(size_t begin, size_t size) {
    extents_.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(size)});
  }

 protected:
  // `pool`: whose the data are and where the block returns to; null: it is held by whoever made it.
  BytesBlock(BytesBlockPool* pool, uint8_t* data, size_t capacity) : pool_(pool), data_(data), capacity_(capacity) {}
  // Holds no records any more, and other bytes.
  void Refill(uint8_t* data, size_t capacity) {
    data_ = data;
    capacity_ = capacity;
    extents_.clear();
  }

 private:
  friend class BytesBlockPool;
  struct Extent {
    uint32_t begin = 0;
    uint32_t size = 0;
  };
  void Dropped() override;

  BytesBlockPool* const pool_;
  uint8_t* data_;
  size_t capacity_;
  std::vector<Extent> extents_;
};

// Makes blocks and keeps those of the usual size for reuse, so that a steady stream touches no new pages. They lie in
// huge pages where the kernel has some: records that a shuffle has mixed lie far apart, and each would cost a page
// walk. Must outlive every block it made; used by the thread that uses these.
class BytesBlockPool {
 public:
  static constexpr size_t kUsualBytes = (256 << 10) - BytesBlock::kPadding;

  BytesBlockPool() = default;
  BytesBlockPool(const BytesBlockPool&) = delete;
  BytesBlockPool& operator=(const BytesBlockPool&) = delete;
  ~BytesBlockPool();

  // An empty block for at least `bytes`.
  BytesBlock* Get(size_t bytes);
  // What its blocks in use take, and what Count was told of others.
  size_t live_bytes() const { return live_bytes_; }
  void Count(int64_t bytes) { live_bytes_ += static_cast<size_t>(bytes); }

 private:
  friend class BytesBlock;
  static constexpr size_t kSlabBytes = 2 << 20;  // a huge page
  static constexpr size_t kBlocksPerSlab = kSlabBytes / (kUsualBytes + BytesBlock::kPadding);

  void AddSlab();
  void Return(BytesBlock* block);

  size_t live_bytes_ = 0;
  std::vector<void*> slabs_;
  std::vector<std::unique_ptr<BytesBlock>> kept_;
};

inline void BytesBlock::Dropped() {
  if (pool_ != nullptr) pool_->Return(this);
}

}  // namespace headrace::side
