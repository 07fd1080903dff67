// The rows of pack: the sequences of several records, one after another.
#include <algorithm>
#include <cstring>

#include "common/spec/pack.h"
#include "sidecar/core/packed_block.h"
#include "sidecar/core/uncounted.h"
#include "sidecar/decode/decoder.h"

namespace headrace::side {
namespace {

class PackedDecoder : public Decoder {
 public:
  PackedDecoder(std::unique_ptr<Decoder> rest, const std::vector<TensorSpec>& components, const Pack& pack)
      : rest_(std::move(rest)),
        length_(static_cast<size_t>(pack.length)),
        packed_(*PackedComponents(pack, components)),  // ParseInputSpec has found them
        values_(components.size()) {
    for (const size_t c : packed_) value_bytes_.push_back(DTypeSize(components[c].dtype));
  }

  Status Decode(std::span<const Record> records, std::span<uint8_t* const> columns) override {
    // All of their records at once; one that goes on in the next row is decoded for both.
    inner_.Clear();
    const auto each_part = [&](auto&& use) -> Status {
      for (size_t row = 0; row < records.size(); ++row) {
        for (const PackedBlock::Part& part : Parts(records[row])) RETURN_IF_ERROR(use(row, part));
      }
      return {};
    };
    RETURN_IF_ERROR(each_part([&](size_t, const PackedBlock::Part& part) -> Status {
      if (!IsLast(part.record)) inner_.Add(part.record.block.get(), part.record.value, part.record.index);
      return {};
    }));
    inner_columns_.clear();
    for (std::vector<BytesRef>& values : values_) {
      values.resize(inner_.all().size());
      inner_columns_.push_back(reinterpret_cast<uint8_t*>(values.data()));
    }
    RETURN_IF_ERROR(rest_->Decode(inner_.all(), inner_columns_));
    for (size_t f = 0; f < packed_.size(); ++f) RETURN_IF_ERROR(Write(records, f, &columns[f * kPackedParts]));
    return {};
  }

 private:
  static const std::vector<PackedBlock::Part>& Parts(const Record& row) {
    return static_cast<const PackedBlock*>(row.block.get())->parts();
  }
  static bool Same(const Record& a, const Record& b) { return a.block.get() == b.block.get() && a.value == b.value; }
  bool IsLast(const Record& record) const { return !inner_.all().empty() && Same(inner_.all().back(), record); }

  // Sequence f of all rows: its values, segment ids and positions.
  Status Write(std::span<const Record> rows, size_t f, uint8_t* const* columns) {
    const size_t bytes = value_bytes_[f];
    const std::vector<BytesRef>& refs = values_[packed_[f]];
    size_t inner = 0;
    for (size_t row = 0; row < rows.size(); ++row) {
      uint8_t* const values = columns[0] + row * length_ * bytes;
      auto* const ids = reinterpret_cast<int32_t*>(columns[1]) + row * length_;
      auto* const positions = reinterpret_cast<int32_t*>(columns[2]) + row * length_;
      size_t used = 0;
      int32_t id = 0;
      for (const PackedBlock::Part& part : Parts(rows[row])) {
        if (!Same(inner_.all()[inner], part.record)) ++inner;
        const BytesRef& ref = refs[inner];
        const size_t begin = std::min(static_cast<size_t>(part.begin), ref.size / bytes);
        const size_t count = std::min(static_cast<size_t>(part.count), ref.size / bytes - begin);
        if (count > length_ - used) return Changed(part.record);
        if (count > 0) std::memcpy(values + used * bytes, ref.data + begin * bytes, count * bytes);
        ++id;
        for (size_t i = 0; i < count; ++i) {
          ids[used + i] = id;
          positions[used + i] = static_cast<int32_t>(begin + i);
        }
        used += count;
      }
      std::memset(values + used * bytes, 0, (length_ - used) * bytes);
      std::memset(ids + used, 0, (length_ - used) * sizeof *ids);
      std::memset(positions + used, 0, (length_ - used) * sizeof *positions);
    }
    return {};
  }

  static Status Changed(const Record& record) {
    return Corrupt(record.Place() + ": the record is longer than when it was packed: the file has changed; start the "
                                    "run again");
  }

  const std::unique_ptr<Decoder> rest_;
  const size_t length_;
  const std::vector<size_t> packed_;
  std::vector<size_t> value_bytes_;  // of each that is packed
  Uncounted inner_;
  std::vector<std::vector<BytesRef>> values_;  // of all components of the records
  std::vector<uint8_t*> inner_columns_;
};

}  // namespace

std::unique_ptr<Decoder> MakePackedDecoder(std::unique_ptr<Decoder> rest, const std::vector<TensorSpec>& components,
                                           const Pack& pack) {
  return std::make_unique<PackedDecoder>(std::move(rest), components, pack);
}

}  // namespace headrace::side
