// What the spec says of formats that are text: CSV's options, and the rules of Text, CSV and JSONLines.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "common/spec/input_spec.h"
#include "common/spec/object_reader.h"

namespace headrace {

// The object spec.source.files.csv.
CsvOptions ParseCsv(const nlohmann::json& object, const std::string& path, std::vector<FieldError>* errors);
nlohmann::json CsvToJson(const CsvOptions& csv);

// REQUIRES: spec.source is files of that format.
void CheckText(const InputSpec& spec, std::vector<FieldError>* errors);
void CheckCsv(const InputSpec& spec, std::vector<FieldError>* errors);
void CheckJsonLines(const InputSpec& spec, std::vector<FieldError>* errors);

// The words of a JSON pointer (RFC 6901), "/a~1b/0" being "a/b" and "0".
std::vector<std::string> JsonPointerWords(const std::string& pointer);
// Where a feature of format JSONLines stands: its path, or the field of its name.
std::string JsonPointerOf(const Feature& feature);

}  // namespace headrace
