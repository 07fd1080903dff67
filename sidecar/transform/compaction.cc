#include "sidecar/transform/compaction.h"

#include <cstring>
#include <memory>

namespace headrace::side {

// Copies of records of one file's kind, from anywhere.
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

  // Whether a record of `from` may stand here beside the others, and finds room for that many bytes.
  bool Takes(const BytesBlock& from, size_t bytes) const {
    return capacity() - used_ >= bytes && from.origin.columns == origin.columns &&
           from.origin.fields == origin.fields && from.origin.before == origin.before;
  }
  // Returns its row here.
  int64_t Take(const BytesBlock& from, int64_t row, std::span<const uint8_t> bytes) {
    std::memcpy(data() + used_, bytes.data(), bytes.size());
    for (size_t field = 0; field < origin.fields; ++field) {
      const std::span<const uint8_t> is = from.Bytes(row, field);
      Add(used_ + static_cast<size_t>(is.data() - bytes.data()), is.size());
    }
    used_ += bytes.size();
    places_.push_back(from.PlaceOf(row));
    return rows() - 1;
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

void Compaction::Move(BytesBlock* from, Record* record) {
  const std::span<const uint8_t> bytes = from->Whole(record->value);
  if (bytes.size() > BytesBlockPool::kUsualBytes / 2) return;  // it has a block almost to itself
  if (open_ == nullptr || !open_->Takes(*from, bytes.size())) {
    open_ = new CompactBlock(&pool_, from->origin, BytesBlockPool::kUsualBytes);
    held_ = BlockRef(open_);
  }
  if (open_ == from) return;
  record->value = open_->Take(*from, record->value, bytes);
  record->block = held_;
}

}  // namespace headrace::side
