#include "sidecar/decode/csv_fields.h"

#include <algorithm>

namespace headrace::side {
namespace {

constexpr size_t kNone = std::string_view::npos;

// The quote that closes the field whose first character is at `begin`.
size_t ClosingQuote(std::string_view record, size_t begin, bool* doubled) {
  *doubled = false;
  while (true) {
    const size_t quote = record.find('"', begin);
    if (quote == kNone || quote + 1 == record.size() || record[quote + 1] != '"') return quote;
    *doubled = true;
    begin = quote + 2;
  }
}

std::string_view WithSingleQuotes(std::string_view text, Arena* arena) {
  auto* const copy = reinterpret_cast<char*>(arena->Take(text.size()));
  size_t size = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    copy[size++] = text[i];
    if (text[i] == '"') ++i;
  }
  return {copy, size};
}

}  // namespace

std::string SplitCsv(std::string_view record, char delimiter, Arena* arena, std::vector<std::string_view>* fields) {
  fields->clear();
  size_t at = 0;
  while (true) {
    size_t end;
    if (at < record.size() && record[at] == '"') {
      bool doubled = false;
      const size_t quote = ClosingQuote(record, at + 1, &doubled);
      const std::string field = "field " + std::to_string(fields->size() + 1);
      if (quote == kNone) return field + " has no closing quote";
      const std::string_view text = record.substr(at + 1, quote - at - 1);
      fields->push_back(doubled ? WithSingleQuotes(text, arena) : text);
      end = quote + 1;
      if (end < record.size() && record[end] != delimiter) return field + " has text after its closing quote";
    } else {
      end = std::min(record.find(delimiter, at), record.size());
      fields->push_back(record.substr(at, end - at));
    }
    if (end == record.size()) return "";
    at = end + 1;
  }
}

std::vector<std::string> CsvColumns(const std::vector<Feature>& features) {
  std::vector<std::string> columns;
  for (const Feature& feature : features) {
    if (feature.columns.empty()) columns.push_back(feature.name);
    columns.insert(columns.end(), feature.columns.begin(), feature.columns.end());
  }
  return columns;
}

}  // namespace headrace::side
