// One record of a data set on its way to a slot, and the block that it lies in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace headrace::side {

class BlockRef;
class BytesBlock;
class ColumnsBlock;
struct Record;

// Some records of one file that were read together: what a format's reader makes and its decoder understands.
//
// Shared by the records in it, without atomics: one thread at a time (a pipeline's) makes, copies and drops records.
// What a block holds does not change once its records are out, so other threads may decode them meanwhile.
class Block {
 public:
  Block() = default;
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  virtual ~Block() = default;

  // The bytes of field `field` of record `row`, where the format's records are bytes. Most have one field.
  virtual std::span<const uint8_t> Bytes(int64_t row, size_t field = 0) const = 0;
  // Starts to bring into the caller's cache where a record lies, which Prefetch then needs; and the record.
  virtual void PrefetchPlace(int64_t) const {}
  virtual void Prefetch(int64_t) const {}
  // This block, if its records are bytes, or rows of columns.
  virtual BytesBlock* bytes_block() { return nullptr; }
  virtual ColumnsBlock* columns_block() { return nullptr; }
  // How many of its records there are. By the thread that makes and drops them.
  size_t references() const { return references_; }
  // Bytes of memory that it takes.
  virtual size_t memory() const = 0;
  // Whether its records lie in it, and not in a file until they are decoded.
  virtual bool holds_records() const { return true; }
  // For messages: "path: record at byte 4905".
  virtual std::string Place(int64_t row) const = 0;

 private:
  friend class BlockRef;
  friend void PointAtRows(std::span<Record> records, const BlockRef& block, int64_t row);
  virtual void Dropped() = 0;  // by the last of its records
  size_t references_ = 0;
};

class BlockRef {
 public:
  BlockRef() = default;
  explicit BlockRef(Block* block) : block_(block) { ++block_->references_; }
  BlockRef(const BlockRef& other) : block_(other.block_) {
    if (block_ != nullptr) ++block_->references_;
  }
  BlockRef(BlockRef&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  BlockRef& operator=(const BlockRef& other) {
    if (block_ != other.block_) *this = BlockRef(other);
    return *this;
  }
  BlockRef& operator=(BlockRef&& other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~BlockRef() {
    if (block_ != nullptr && --block_->references_ == 0) block_->Dropped();
  }

  // One that is not counted, for records that live while others hold the block, on whichever thread. To be forgotten
  // before it is destroyed.
  static BlockRef Uncounted(Block* block) {
    BlockRef ref;
    ref.block_ = block;
    return ref;
  }
  void Forget() { block_ = nullptr; }

  Block* get() const { return block_; }
  Block* operator->() const { return block_; }
  explicit operator bool() const { return block_ != nullptr; }

 private:
  friend void PointAtRows(std::span<Record> records, const BlockRef& block, int64_t row);
  Block* block_ = nullptr;
};

// A record by reference: a row of a block, or a number. Decoded only when its place in a slot is known, and not at all
// if this worker does not deliver it.
struct Record {
  BlockRef block;     // empty if the record is a number
  int64_t value = 0;  // the row in its block; range: the number; tensors: the row
  int64_t index = 0;  // what enumerate gave it

  std::span<const uint8_t> bytes(size_t field = 0) const { return block->Bytes(value, field); }
  // For messages: where it lies, or which number it is.
  std::string Place() const { return block ? block->Place(value) : "element " + std::to_string(value); }
};

// Makes `records` the rows of `block` from `row` on; of none, if that is empty. References are counted a run at a time
// and not record by record.
inline void PointAtRows(std::span<Record> records, const BlockRef& block, int64_t row) {
  Block* const to = block.get();
  if (to != nullptr) to->references_ += records.size();
  for (size_t i = 0; i < records.size();) {
    Block* const from = records[i].block.block_;
    const size_t begin = i;
    for (; i < records.size() && records[i].block.block_ == from; ++i) {
      records[i].block.block_ = to;
      records[i].value = row++;
    }
    if (from != nullptr && (from->references_ -= i - begin) == 0) from->Dropped();
  }
}

// The value of a string feature: bytes within a record's, alive as long as the record. A row of a column of dtype
// string is one of these.
struct BytesRef {
  const uint8_t* data = nullptr;
  uint64_t size = 0;
};

// A file of the list of files, by its index in the FileTable.
struct File {
  uint32_t index = 0;
};

// A batch of records, or of batches: rows x row_records records, row-major. An element that was never batched is one
// row.
struct Batch {
  std::vector<Record> records;
  int64_t rows = 0;
  int64_t row_records = 1;
};

}  // namespace headrace::side
