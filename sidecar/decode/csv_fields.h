// Records of CSV as fields, by RFC 4180.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/spec/input_spec.h"
#include "sidecar/core/arena.h"

namespace headrace::side {

// Splits a record, without its line end, at `delimiter`. A field that begins with a quote ends with one, and has two
// for each within; a quote elsewhere is an ordinary character. Fields lie in the record, or in `arena` where two quotes
// became one. Returns what is wrong, "field 3 has text after its closing quote", or "".
std::string SplitCsv(std::string_view record, char delimiter, Arena* arena, std::vector<std::string_view>* fields);

// The columns that features are read from, those of the first feature first: its `columns`, or else that of its name.
std::vector<std::string> CsvColumns(const std::vector<Feature>& features);

}  // namespace headrace::side
