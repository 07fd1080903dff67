#include "sidecar/transform/compaction.h"

#include <cstring>

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

// Less than half of its block is left, and it is not most of that.
bool IsSparse(const Record& record) {
  BytesBlock* const block = record.block ? record.block->bytes_block() : nullptr;
  return block != nullptr && 2 * static_cast<int64_t>(block->references()) < block->rows() &&
         block->Whole(record.value).size() < block->capacity() / 2;
}

}  // namespace

void Compaction::Sweep(std::span<Record> records) {
  if (pool_.live_bytes() < kSpareBytes) return;
  sparse_.clear();
  size_t bytes = 0;
  const std::vector<int32_t>* columns = nullptr;
  const auto move = [&] {
    if (sparse_.size() > 1) MoveTogether(sparse_, bytes);
    sparse_.clear();
    bytes = 0;
  };
  for (Record& record : records) {
    if (!IsSparse(record)) continue;
    const BytesBlock& block = *record.block->bytes_block();
    const size_t size = block.Whole(record.value).size();
    // Records of a block are of one kind: of files that order their columns alike.
    if (!sparse_.empty() && (columns != block.origin.columns || bytes + size > kMostBytes)) move();
    columns = block.origin.columns;
    bytes += size;
    sparse_.push_back(&record);
  }
  move();
}

void Compaction::MoveTogether(std::span<Record* const> records, size_t bytes) {
  auto* const block = new CompactBlock(&pool_, records[0]->block->bytes_block()->origin, bytes);
  const BlockRef held(block);
  for (Record* const record : records) {
    block->Copy(*record->block->bytes_block(), record->value);
    record->value = block->rows() - 1;
    record->block = held;
  }
}

}  // namespace headrace::side
