#include "tests/operator/yaml_case.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>

namespace headrace::testing {
namespace {

using nlohmann::json;

json Scalar(const YAML::Node& node) {
  const std::string& text = node.Scalar();
  if (node.Tag() == "!") return text;  // quoted
  if (text == "true") return true;
  if (text == "false") return false;
  if (text == "null" || text == "~") return nullptr;
  int64_t whole = 0;
  if (YAML::convert<int64_t>::decode(node, whole)) return whole;
  double number = 0;
  if (YAML::convert<double>::decode(node, number)) return number;
  return text;
}

json Convert(const YAML::Node& node) {
  if (node.IsMap()) {
    json object = json::object();
    for (const auto& entry : node) {
      if (entry.first.Scalar() == "<<") {
        const json merged = Convert(entry.second);  // named: the loop needs it alive
        for (const auto& [key, value] : merged.items()) object.emplace(key, value);
      } else {
        object[entry.first.Scalar()] = Convert(entry.second);
      }
    }
    return object;
  }
  if (node.IsSequence()) {
    json list = json::array();
    for (const auto& entry : node) list.push_back(Convert(entry));
    return list;
  }
  return node.IsScalar() ? Scalar(node) : json();
}

}  // namespace

json LoadYaml(const std::string& path) { return Convert(YAML::LoadFile(path)); }

std::vector<std::string> CaseFiles(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  }
  if (files.empty()) {
    std::cerr << "no cases in " << folder << "\n";
    std::exit(1);
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string CaseName(const std::string& path) { return std::filesystem::path(path).stem(); }

json Substitute(const json& value, const std::string& from, const std::string& to) {
  const auto replaced = [&](std::string text) {
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
      text.replace(at, from.size(), to);
    }
    return text;
  };
  if (value.is_string()) return replaced(value.get<std::string>());
  json out = value;
  if (value.is_object()) {
    out = json::object();
    for (const auto& [key, item] : value.items()) out[replaced(key)] = Substitute(item, from, to);
  } else if (value.is_array()) {
    for (json& item : out) item = Substitute(item, from, to);
  }
  return out;
}

std::string Missing(const json& expected, const json& actual, const std::string& path) {
  const auto differs = [&] { return path + ": expected " + expected.dump() + ", got " + actual.dump(); };
  if (expected.is_object()) {
    if (!actual.is_object()) return differs();
    for (const auto& [key, value] : expected.items()) {
      const auto found = actual.find(key);
      if (value.is_null()) {
        if (found != actual.end()) return path + "/" + key + ": expected nothing, got " + found->dump();
        continue;
      }
      if (found == actual.end()) return path + "/" + key + ": expected " + value.dump() + ", got nothing";
      if (std::string missing = Missing(value, *found, path + "/" + key); !missing.empty()) return missing;
    }
    return "";
  }
  if (expected.is_array()) {
    if (!actual.is_array() || actual.size() != expected.size()) return differs();
    for (size_t i = 0; i < expected.size(); ++i) {
      if (std::string missing = Missing(expected[i], actual[i], path + "/" + std::to_string(i)); !missing.empty()) {
        return missing;
      }
    }
    return "";
  }
  if (expected.is_string() && expected.get_ref<const std::string&>().starts_with("~")) {
    const std::string wanted = expected.get<std::string>().substr(1);
    return actual.is_string() && actual.get_ref<const std::string&>().find(wanted) != std::string::npos ? ""
                                                                                                        : differs();
  }
  return expected == actual ? "" : differs();
}

}  // namespace headrace::testing
