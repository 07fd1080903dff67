#include "operator/kube/watch_line.h"

#include <nlohmann/json.hpp>

namespace headrace::kube {
namespace {

// As the API server writes it. Inside of a string there would be a backslash before the second quote.
constexpr std::string_view kManagedFields = "\"managedFields\":[";

// Where the list ends whose bracket is at `begin`: behind its last; npos if it does not.
size_t EndOfList(std::string_view text, size_t begin) {
  size_t open = 0;
  bool in_string = false;
  for (size_t i = begin; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[') {
      ++open;
    } else if (c == ']' && --open == 0) {
      return i + 1;
    }
  }
  return text.npos;
}

// The text without the members "managedFields", each with one of the commas beside it. As text, since to parse them
// takes longer than all that is kept.
std::string WithoutManagedFields(std::string_view text) {
  std::string rest;
  rest.reserve(text.size());
  for (;;) {
    size_t begin = text.find(kManagedFields);
    if (begin == text.npos) break;
    size_t end = EndOfList(text, begin + kManagedFields.size() - 1);
    if (end == text.npos) break;  // no JSON: the parser will say so
    if (begin > 0 && text[begin - 1] == ',') {
      --begin;
    } else if (end < text.size() && text[end] == ',') {
      ++end;
    }
    rest += text.substr(0, begin);
    text.remove_prefix(end);
  }
  rest += text;
  return rest;
}

}  // namespace

nlohmann::json ParseWatchLine(std::string_view line) {
  return nlohmann::json::parse(WithoutManagedFields(line), nullptr, /*allow_exceptions=*/false);
}

}  // namespace headrace::kube
