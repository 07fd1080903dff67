#include "sidecar/transform/compaction.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "sidecar/transform/compact_columns.h"

namespace headrace::side {
namespace {

constexpr size_t kMostBytes = 1 << 20;  // of a block, but for one record

// Copies of records from anywhere.
class CompactBlock final : public BytesBlock {
 public:
  CompactBlock(BytesBlockPool* pool, const Origin& like, size_t capacity)
      : BytesBlock(nullptr, new uint8_t[capacity + kPadding], capacity), live_(*pool) {
    origin = like;
    live_.Count(static_cast<int64_t>(capacity));
  }
  ~CompactBlock() override {
    live_.Count(-static_cast<int64_t>(this->capacity()));
    delete[] this->data();
  }

  // Its row is the last one here.
  void Copy(const BytesBlock& from, int64_t row) {
    const std::span<const uint8_t> bytes = from.Whole(row);
    std::memcpy(data() + used_, bytes.data(), bytes.size());
    for (size_t field = 0; field < origin.fields; ++field) {
      const std::span<const uint8_t> is = from.Bytes(row, field);
      Add(used_ + static_cast<size_t>(is.data() - bytes.data()), is.size());
    }
    used_ += bytes.size();
    places_.push_back(from.PlaceOf(row));
  }

  FilePlace PlaceOf(int64_t row) const override { return places_[static_cast<size_t>(row)]; }
  std::string Place(int64_t row) const override {
    const FilePlace place = PlaceOf(row);
    return *place.path + ": record at byte " + std::to_string(place.offset);
  }

 private:
  void Dropped() override { delete this; }

  BytesBlockPool& live_;
  size_t used_ = 0;
  std::vector<FilePlace> places_;
};

// How many bytes a record has, if less than half of its block is left and it is not most of that.
std::optional<size_t> SparseBytes(const Record& record) {
  if (!record.block) return std::nullopt;
  const auto is_sparse = [&](int64_t rows) { return 2 * static_cast<int64_t>(record.block->references()) < rows; };
  size_t bytes = 0;
  size_t block_bytes = 0;
  if (const BytesBlock* const block = record.block->bytes_block(); block != nullptr && is_sparse(block->rows())) {
    bytes = block->Whole(record.value).size();
    block_bytes = block->capacity();
  } else if (const ColumnsBlock* const rows = record.block->columns_block(); rows != nullptr && is_sparse(rows->rows)) {
    bytes = rows->RowBytes(record.value);
    block_bytes = rows->bytes;
  }
  return bytes < block_bytes / 2 ? std::optional(bytes) : std::nullopt;
}

// Whether copies of both may lie in one block: for bytes, that they are of files that order their columns alike.
bool AreAlike(const Record& a, const Record& b) {
  BytesBlock* const bytes = a.block->bytes_block();
  if (bytes != nullptr) return bytes->origin.columns == b.block->bytes_block()->origin.columns;
  return AreAlike(*a.block->columns_block(), *b.block->columns_block());
}

}  // namespace

void Compaction::Sweep(std::span<Record> records) {
  if (pool_.live_bytes() < kSpareBytes) return;
  sparse_.clear();
  size_t bytes = 0;
  for (Record& record : records) {
    const std::optional<size_t> here = SparseBytes(record);
    // Those of another kind wait for a sweep that begins with one of theirs.
    if (!here || (!sparse_.empty() && !AreAlike(*sparse_.front(), record))) continue;
    if (bytes + *here > kMostBytes) {
      MoveTogether(bytes);
      bytes = 0;
    }
    bytes += *here;
    sparse_.push_back(&record);
  }
  MoveTogether(bytes);
}

void Compaction::MoveTogether(size_t bytes) {
  if (sparse_.size() > 1) {
    const bool are_rows = sparse_.front()->block->columns_block() != nullptr;
    const BlockRef held(are_rows ? MoveRows() : MoveBytes(bytes));
    for (size_t row = 0; row < sparse_.size(); ++row) {
      sparse_[row]->value = static_cast<int64_t>(row);
      sparse_[row]->block = held;
    }
  }
  sparse_.clear();
}

Block* Compaction::MoveBytes(size_t bytes) {
  auto* const block = new CompactBlock(&pool_, sparse_.front()->block->bytes_block()->origin, bytes);
  for (const Record* const record : sparse_) block->Copy(*record->block->bytes_block(), record->value);
  return block;
}

Block* Compaction::MoveRows() {
  // Neighbours are read, and told where they come from, at once.
  std::sort(sparse_.begin(), sparse_.end(), [](const Record* a, const Record* b) {
    return std::pair(a->block.get(), a->value) < std::pair(b->block.get(), b->value);
  });
  std::vector<RowAt> rows;
  for (const Record* const record : sparse_) rows.push_back({record->block->columns_block(), record->value});
  ColumnsBlock* const block = new CompactColumns(rows);
  block->CountOn(&pool_);
  return block;
}

}  // namespace headrace::side
