// Where the fields of a line of CSV go, and the quick way through lines that are plain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "common/spec/dtype.h"

namespace headrace::side {

// One column of the files at hand.
struct CsvCell {
  enum class Kind : uint8_t { kPassedOver, kFloat32, kFloat64, kInteger, kString, kOther };
  Kind kind = Kind::kPassedOver;
  DType dtype = DType::kFloat32;
  size_t target = 0;                                    // which of CsvColumns it is
  uint8_t* out = nullptr;                               // where row 0 has it
  size_t row_bytes = 0;                                 // from one row to the next
  const std::vector<uint8_t>* default_value = nullptr;  // for an empty field; null: none
};

// Writes one field's value. false: it is none of the dtype, or empty where there is no default.
bool StoreCsvField(const CsvCell& cell, std::string_view text, uint8_t* out);

// Writes a line's fields as row `row`; 64 bytes after the line can be read. false: the line has quotes, or something is
// wrong with it, and it must be looked at closely; what was written is worth nothing then.
using CsvLine = bool (*)(std::span<const CsvCell> cells, char delimiter, const uint8_t* line, size_t size, size_t row);

// For this processor; null if it has not the vector instructions that this takes.
CsvLine QuickCsvLine();

}  // namespace headrace::side
