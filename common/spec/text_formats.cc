#include "common/spec/text_formats.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "common/base/words.h"
#include "common/spec/tensor_fields.h"

namespace headrace {
namespace {

using nlohmann::json;

constexpr size_t kMaxColumns = 4096;
constexpr size_t kMaxColumnName = 1024;

std::string FeatureField(size_t i, const std::string& field) {
  return "spec.features[" + std::to_string(i) + "]." + field;
}

bool IsDelimiter(const std::string& text) {
  if (text == "\t") return true;
  constexpr std::string_view kOfNumbers = "+-.\"";
  return text.size() == 1 && text[0] >= ' ' && text[0] <= '~' &&
         std::isalnum(static_cast<unsigned char>(text[0])) == 0 && kOfNumbers.find(text[0]) == std::string_view::npos;
}

}  // namespace

CsvOptions ParseCsv(const json& object, const std::string& path, std::vector<FieldError>* errors) {
  CsvOptions csv;
  ObjectReader reader(object, path, errors);
  csv.header = reader.Bool("header", true);
  const json* columns = reader.Array("columns", 1, kMaxColumns);
  for (size_t i = 0; columns != nullptr && i < columns->size(); ++i) {
    const json& value = (*columns)[i];
    const std::string column = value.is_string() ? value.get<std::string>() : "";
    const std::string field = "columns[" + std::to_string(i) + "]";
    if (column.empty() || column.size() > kMaxColumnName) {
      reader.Error(field, "must be the name of a column, not " + value.dump());
    } else if (std::find(csv.columns.begin(), csv.columns.end(), column) != csv.columns.end()) {
      reader.Error(field, value.dump() + " stands twice; each column needs a name of its own");
    } else {
      csv.columns.push_back(column);
    }
  }
  if (csv.header && columns != nullptr) {
    reader.Error("columns", "goes with header: false; with a header, each file names its columns itself");
  } else if (!csv.header && columns == nullptr) {
    reader.Error("columns", "is required without a header: the names of the columns, in their order");
  }
  if (reader.Has("delimiter")) {
    const std::string delimiter = reader.RequiredString("delimiter", 1);
    if (IsDelimiter(delimiter)) {
      csv.delimiter = delimiter[0];
    } else if (!delimiter.empty()) {
      reader.Error("delimiter", json(delimiter).dump(-1, ' ', true, json::error_handler_t::replace) +
                                    " cannot be told from data; use one such as \",\", \";\", \"|\" or \"\\t\"");
    }
  } else {
    reader.Any("delimiter");
  }
  return csv;
}

json CsvToJson(const CsvOptions& csv) {
  json out = {{"header", csv.header}, {"delimiter", std::string(1, csv.delimiter)}};
  if (!csv.header) out["columns"] = csv.columns;
  return out;
}

void CheckText(const InputSpec& spec, std::vector<FieldError>* errors) {
  if (spec.features.size() > 1) {
    errors->push_back({"spec.features", "has " + std::to_string(spec.features.size()) +
                                            " features, and a line of text is one string; name one, or none and the "
                                            "component is \"line\""});
  } else if (spec.features.size() == 1 && spec.features[0].dtype != DType::kString) {
    errors->push_back({FeatureField(0, "dtype"),
                       "must be string: a line of text is one; make a number of it by map "
                       "stringToNumber"});
  }
}

void CheckCsv(const InputSpec& spec, std::vector<FieldError>* errors) {
  const CsvOptions& csv = std::get<FilesSource>(spec.source).csv;
  const std::vector<std::string_view> known(csv.columns.begin(), csv.columns.end());
  std::set<std::string> read;
  for (size_t i = 0; i < spec.features.size(); ++i) {
    const Feature& feature = spec.features[i];
    if (!feature.shape.empty() && feature.shape[0] < 0) {
      errors->push_back({FeatureField(i, "shape"), "must be fixed: a line of CSV has one value of each column"});
      continue;
    }
    if (feature.columns.empty() && NumValues(feature.shape) != 1) {
      errors->push_back(
          {FeatureField(i, "shape"), "takes " + std::to_string(NumValues(feature.shape)) +
                                         " values, and a column holds one; name as many columns in columns"});
    }
    const std::vector<std::string> columns =
        feature.columns.empty() ? std::vector<std::string>{feature.name} : feature.columns;
    for (size_t c = 0; c < columns.size(); ++c) {
      const std::string field =
          FeatureField(i, feature.columns.empty() ? "name" : "columns[" + std::to_string(c) + "]");
      if (!read.insert(columns[c]).second) {
        errors->push_back(
            {field, "column \"" + columns[c] + "\" is read already; copy the component by a map with as"});
      } else if (!csv.header && std::find(known.begin(), known.end(), columns[c]) == known.end()) {
        const std::string nearest = NearestName(columns[c], known);
        errors->push_back({field, "\"" + columns[c] + "\" is not among spec.source.files.csv.columns" +
                                      (nearest.empty() ? "" : "; did you mean \"" + nearest + "\"?")});
      }
    }
  }
}

void CheckJsonLines(const InputSpec& spec, std::vector<FieldError>* errors) {
  std::vector<std::vector<std::string>> all;
  for (size_t i = 0; i < spec.features.size(); ++i) {
    const std::vector<std::string>& words = all.emplace_back(JsonPointerWords(JsonPointerOf(spec.features[i])));
    for (size_t other = 0; other < i; ++other) {
      const size_t common = std::min(words.size(), all[other].size());
      if (!std::equal(words.begin(), words.begin() + static_cast<ptrdiff_t>(common), all[other].begin())) continue;
      errors->push_back(
          {FeatureField(i, "path"), "\"" + JsonPointerOf(spec.features[i]) + "\" is, or lies in, that of \"" +
                                        spec.features[other].name +
                                        "\", or holds it; read each value once, and copy by a map with as"});
      break;
    }
  }
}

std::vector<std::string> JsonPointerWords(const std::string& pointer) {
  std::vector<std::string> words;
  for (size_t i = 0; i < pointer.size(); ++i) {
    if (pointer[i] == '/') {
      words.emplace_back();
    } else if (pointer[i] == '~' && i + 1 < pointer.size()) {
      words.back() += pointer[++i] == '1' ? '/' : '~';
    } else {
      words.back() += pointer[i];
    }
  }
  return words;
}

std::string JsonPointerOf(const Feature& feature) {
  if (!feature.path.empty()) return feature.path;
  std::string pointer = "/";
  for (const char c : feature.name) pointer += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return pointer;
}

}  // namespace headrace
