// A row that pack makes of several records: a block of one record, which holds those that are in it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sidecar/core/record.h"

namespace headrace::side {

class PackedBlock final : public Block {
 public:
  // Values [begin, begin + count) of each of the record's sequences, as far as it has them.
  struct Part {
    Record record;
    int64_t begin = 0;
    int64_t count = 0;
  };

  const std::vector<Part>& parts() const { return parts_; }

  std::span<const uint8_t> Bytes(int64_t, size_t) const override { return {}; }
  size_t memory() const override { return sizeof(*this) + parts_.capacity() * sizeof(Part) + shares_; }
  std::string Place(int64_t) const override { return "the row that begins with " + parts_.front().record.Place(); }

  // ---- For those who fill it, before its record is out.
  void Add(Part part) {
    // Records share their block.
    if (const Block* const block = part.record.block.get()) shares_ += block->memory() / block->references();
    parts_.push_back(std::move(part));
  }

 private:
  void Dropped() override { delete this; }

  std::vector<Part> parts_;  // not empty once its record is out
  size_t shares_ = 0;        // of the records' blocks, in bytes
};

}  // namespace headrace::side
