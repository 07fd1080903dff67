// YAML files as JSON values, typed as kubectl types them, with the place of every field for messages.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"

namespace headrace::cli {

// One document of a YAML file. Immutable.
struct YamlDocument {
  struct Place {
    int line = 0;
    int column = 0;
  };

  std::string file;
  std::shared_ptr<const nlohmann::json> value;
  std::map<std::string, Place> places;  // by path: "spec.pipeline[1].batch"

  // "input.yaml:12:5" of `path`, or of its nearest parent that is there.
  std::string Where(std::string_view path) const;
};

// Plain scalars become null, booleans (also yes/no and on/off, as in kubectl), integers (decimal, 0x, 0o, 0b) and
// floats; the rest are strings. Refused, with "file:line:col: ": a duplicate key, a key that is no scalar, an integer
// that means two things (010), .inf and .nan, and documents that aliases blow up. Empty documents are left out.
// `name` is the file's name in messages.
Result<std::vector<YamlDocument>> ParseYaml(const std::string& text, const std::string& name);

// Reads `path`; "-" is standard input. Errors: NotFound, Unavailable, and ParseYaml's.
Result<std::vector<YamlDocument>> ReadYamlFile(const std::string& path);

// `value` as a YAML document in block style, which ParseYaml reads back unchanged; with a newline at the end.
std::string PrintYaml(const nlohmann::json& value);

}  // namespace headrace::cli
