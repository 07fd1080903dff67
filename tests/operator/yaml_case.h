// Text cases: one YAML file, one case. Values are read as JSON; anchors and merge keys work as YAML has them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace headrace::testing {

nlohmann::json LoadYaml(const std::string& path);

// The *.yaml files of a folder, in the order of their names. Fails the process if there is none.
std::vector<std::string> CaseFiles(const std::string& folder);

// "folder/job_indexed.yaml" -> "job_indexed", for the names of parameterised tests.
std::string CaseName(const std::string& path);

// Replaces `from` by `to` in every string of `value`, keys too.
nlohmann::json Substitute(const nlohmann::json& value, const std::string& from, const std::string& to);

// Where `actual` lacks something of `expected` ("/runs/0/owner: expected \"Job/a\", got \"Job/b\""); empty if nothing.
// Objects may hold more than expected, lists not. A string "~text" expects a string that contains text; null expects
// absence.
std::string Missing(const nlohmann::json& expected, const nlohmann::json& actual, const std::string& path = "");

}  // namespace headrace::testing
