// One record of a data set on its way to a slot, and the memory it lies in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

namespace headrace::side {

class ChunkPool;

// A block of bytes that holds many records. Freed (or kept for reuse) with the last record that lies in it.
// Chunks, and all that refers to them, belong to one thread.
class Chunk {
 public:
  uint8_t* data() { return data_; }
  size_t capacity() const { return capacity_; }

 private:
  friend class ChunkPool;
  friend class ChunkRef;
  ChunkPool* pool_ = nullptr;
  uint8_t* data_ = nullptr;
  size_t capacity_ = 0;
  size_t references_ = 0;
};

// Shared ownership of a chunk, without atomics: one thread.
class ChunkRef {
 public:
  ChunkRef() = default;
  explicit ChunkRef(Chunk* chunk) : chunk_(chunk) { ++chunk_->references_; }
  ChunkRef(const ChunkRef& other) : chunk_(other.chunk_) {
    if (chunk_ != nullptr) ++chunk_->references_;
  }
  ChunkRef(ChunkRef&& other) noexcept : chunk_(std::exchange(other.chunk_, nullptr)) {}
  ChunkRef& operator=(ChunkRef other) noexcept {
    std::swap(chunk_, other.chunk_);
    return *this;
  }
  inline ~ChunkRef();

  Chunk* get() const { return chunk_; }
  Chunk* operator->() const { return chunk_; }
  explicit operator bool() const { return chunk_ != nullptr; }

 private:
  Chunk* chunk_ = nullptr;
};

// Makes chunks and keeps a few of the usual size for reuse, so that a steady stream touches no new pages.
// Must outlive every chunk it made.
class ChunkPool {
 public:
  static constexpr size_t kUsualBytes = 256 << 10;
  static constexpr size_t kMaxKept = 64;

  ChunkPool() = default;
  ChunkPool(const ChunkPool&) = delete;
  ChunkPool& operator=(const ChunkPool&) = delete;
  ~ChunkPool() {
    for (Chunk* chunk : kept_) Free(chunk);
  }

  // A chunk of at least `bytes`. Aborts when memory is out, as operator new would.
  ChunkRef Get(size_t bytes) {
    if (bytes <= kUsualBytes && !kept_.empty()) {
      Chunk* const chunk = kept_.back();
      kept_.pop_back();
      return ChunkRef(chunk);
    }
    auto* const chunk = new Chunk;
    chunk->pool_ = this;
    chunk->capacity_ = bytes < kUsualBytes ? kUsualBytes : bytes;
    chunk->data_ = new uint8_t[chunk->capacity_];
    return ChunkRef(chunk);
  }

 private:
  friend class ChunkRef;
  void Return(Chunk* chunk) {
    if (chunk->capacity_ == kUsualBytes && kept_.size() < kMaxKept) {
      kept_.push_back(chunk);
    } else {
      Free(chunk);
    }
  }
  static void Free(Chunk* chunk) {
    delete[] chunk->data_;
    delete chunk;
  }
  std::vector<Chunk*> kept_;
};

inline ChunkRef::~ChunkRef() {
  if (chunk_ != nullptr && --chunk_->references_ == 0) chunk_->pool_->Return(chunk_);
}

// A record by reference: bytes in a chunk, or a number. Decoded only when its place in a slot is known, and not at all
// if this worker does not deliver it.
struct Record {
  ChunkRef chunk;  // keeps `data` alive; empty if the record is a number
  const uint8_t* data = nullptr;
  uint32_t size = 0;
  uint32_t file = 0;    // index in the FileTable, for messages
  uint64_t offset = 0;  // of the record in its (uncompressed) file, for messages
  int64_t value = 0;    // range: the number; tensors: the row
  int64_t index = 0;    // what enumerate gave it
};

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
