// Blocks of records that are rows of a table, column by column: what the readers of Parquet and Arrow make.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "common/spec/dtype.h"
#include "sidecar/core/record.h"

namespace headrace::side {

// The values of one column for all rows of a block, in the type and the place in which they were read.
struct ColumnView {
  enum class Rows {
    kFixed,      // row r is values[r * unit, (r + 1) * unit)
    kOffsets32,  // row r is values[offsets[r] * unit, offsets[r + 1] * unit): a list, or with kString the bytes of one
    kOffsets64,  // the same with larger offsets
    kRefs,       // kString only: row r is the r-th BytesRef of values
    kNone,       // every row is null
  };
  DType dtype = DType::kUint8;
  Rows rows = Rows::kNone;
  int64_t unit = 1;                 // values; 1 where the rows are scalars or strings
  const uint8_t* values = nullptr;  // kRefs: aligned; else of any alignment; kString: of one byte each
  const void* offsets = nullptr;    // aligned; they rise, and end within the values
  // Bit `valid_bit` + r says that row r is not null; nullptr: none is.
  const uint8_t* valid = nullptr;
  int64_t valid_bit = 0;
  // Bit r says that a value within row r, which is not null itself, is null; nullptr: none is.
  const uint8_t* holes = nullptr;

  static bool Bit(const uint8_t* bits, int64_t at) { return ((bits[at >> 3] >> (at & 7)) & 1) != 0; }
  bool IsNull(int64_t row) const { return rows == Rows::kNone || (valid != nullptr && !Bit(valid, valid_bit + row)); }
  bool HasHole(int64_t row) const { return holes != nullptr && Bit(holes, row); }
  // In units.
  int64_t Offset(int64_t row) const {
    return rows == Rows::kOffsets32 ? static_cast<const int32_t*>(offsets)[row]
                                    : static_cast<const int64_t*>(offsets)[row];
  }
  // The bytes of a row's values. REQUIRES: !IsNull(row).
  BytesRef Row(int64_t row) const {
    if (rows == Rows::kRefs) {
      BytesRef ref;
      std::memcpy(&ref, values + static_cast<size_t>(row) * sizeof ref, sizeof ref);
      return ref;
    }
    const size_t unit_bytes = static_cast<size_t>(unit) * (dtype == DType::kString ? 1 : DTypeSize(dtype));
    const int64_t begin = rows == Rows::kFixed ? row : Offset(row);
    const int64_t end = rows == Rows::kFixed ? row + 1 : Offset(row + 1);
    return {values + static_cast<size_t>(begin) * unit_bytes, static_cast<size_t>(end - begin) * unit_bytes};
  }
};

class ColumnsBlock final : public Block {
 public:
  struct Origin {
    const std::string* path = nullptr;  // of the file; outlives the block
    std::string part;                   // of the file: "row group 3"
    int64_t first_row = 0;              // of the block, in the part
  };
  Origin origin;
  int64_t rows = 0;
  std::vector<ColumnView> columns;                 // those of one feature after another
  std::vector<std::shared_ptr<const void>> keeps;  // what they view
  size_t bytes = 0;                                // of that, about

  std::span<const uint8_t> Bytes(int64_t, size_t) const override { return {}; }
  size_t memory() const override { return bytes; }
  std::string Place(int64_t row) const override {
    return *origin.path + ": " + origin.part + ", row " + std::to_string(origin.first_row + row);
  }

 private:
  void Dropped() override { delete this; }
};

}  // namespace headrace::side
