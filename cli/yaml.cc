#include "cli/yaml.h"

#include <yaml-cpp/yaml.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <sstream>
#include <utility>

namespace headrace::cli {
namespace {

using nlohmann::json;

// Aliases make a small file mean a large document; a real object is far below this.
constexpr int kMaxNodes = 200000;
constexpr int kMaxDepth = 100;

bool OneOf(const std::string& text, std::initializer_list<std::string_view> words) {
  for (std::string_view word : words) {
    if (text == word) return true;
  }
  return false;
}

class Converter {
 public:
  explicit Converter(YamlDocument* document) : document_(document) {}

  Result<json> Convert(const YAML::Node& node, const std::string& path, int depth = 0) {
    document_->places[path] = {node.Mark().line + 1, node.Mark().column + 1};
    if (++nodes_ > kMaxNodes || depth > kMaxDepth) {
      return Error(node.Mark(), "the document is too large once its aliases are expanded");
    }
    switch (node.Type()) {
      case YAML::NodeType::Undefined:
      case YAML::NodeType::Null: return json(nullptr);
      case YAML::NodeType::Scalar: return Scalar(node);
      case YAML::NodeType::Sequence: {
        json array = json::array();
        for (size_t i = 0; i < node.size(); ++i) {
          ASSIGN_OR_RETURN(json item, Convert(node[i], path + "[" + std::to_string(i) + "]", depth + 1));
          array.push_back(std::move(item));
        }
        return array;
      }
      case YAML::NodeType::Map: return Map(node, path, depth);
    }
    return Error(node.Mark(), "unknown kind of YAML node");
  }

 private:
  Status Error(const YAML::Mark& mark, const std::string& message) const {
    return InvalidArgument(document_->file + ":" + std::to_string(mark.line + 1) + ":" +
                           std::to_string(mark.column + 1) + ": " + message);
  }

  Result<json> Map(const YAML::Node& node, const std::string& path, int depth) {
    json object = json::object();
    json merged = json::object();  // from "<<": keys of the map itself win
    for (const auto& entry : node) {
      if (!entry.first.IsScalar()) return Error(entry.first.Mark(), "a key must be a string");
      const std::string& key = entry.first.Scalar();
      const std::string child = path.empty() ? key : path + "." + key;
      if (key == "<<" && entry.first.Tag() == "?") {
        RETURN_IF_ERROR(Merge(entry.second, path, depth, &merged));
        continue;
      }
      if (object.contains(key)) return Error(entry.first.Mark(), "duplicate key \"" + key + "\"");
      ASSIGN_OR_RETURN(object[key], Convert(entry.second, child, depth + 1));
      document_->places[child] = {entry.first.Mark().line + 1, entry.first.Mark().column + 1};
    }
    for (auto& [key, value] : merged.items()) {
      if (!object.contains(key)) object[key] = value;
    }
    return object;
  }

  Status Merge(const YAML::Node& node, const std::string& path, int depth, json* merged) {
    if (node.IsSequence()) {
      for (const auto& item : node) RETURN_IF_ERROR(Merge(item, path, depth + 1, merged));
      return Status();
    }
    if (!node.IsMap()) return Error(node.Mark(), "\"<<\" needs a mapping or a list of mappings");
    ASSIGN_OR_RETURN(json value, Convert(node, path, depth + 1));
    for (auto& [key, item] : value.items()) {
      if (!merged->contains(key)) (*merged)[key] = item;
    }
    return Status();
  }

  Result<json> Scalar(const YAML::Node& node) {
    const std::string& text = node.Scalar();
    const std::string& tag = node.Tag();
    if (tag == "!" || tag == "tag:yaml.org,2002:str") return json(text);  // quoted, or !!str
    if (OneOf(text, {"", "~", "null", "Null", "NULL"})) return json(nullptr);
    if (OneOf(text, {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"})) return json(true);
    if (OneOf(text, {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"})) return json(false);
    return Number(node, text);
  }

  Result<json> Number(const YAML::Node& node, const std::string& text) {
    static const std::regex ambiguous("[-+]?0[0-9]+");
    static const std::regex integer("[-+]?([0-9]+|0x[0-9a-fA-F]+|0o[0-7]+|0b[01]+)");
    static const std::regex real("[-+]?(\\.[0-9]+|[0-9]+(\\.[0-9]*)?)([eE][-+]?[0-9]+)?");
    static const std::regex special("[-+]?\\.(inf|Inf|INF)|\\.(nan|NaN|NAN)");
    if (text.size() > 64) return json(text);
    if (std::regex_match(text, ambiguous)) {
      return Error(node.Mark(), text + " is octal to some readers and decimal to others: write 0o" +
                                    text.substr(text.find('0') + 1) + ", or drop the leading zero, or quote it");
    }
    if (std::regex_match(text, integer)) return Integer(node, text);
    if (std::regex_match(text, special)) return Error(node.Mark(), text + " has no place in JSON: quote it");
    if (std::regex_match(text, real)) {
      const double value = std::strtod(text.c_str(), nullptr);
      if (!std::isfinite(value)) return Error(node.Mark(), text + " is too large for a number");
      return json(value);
    }
    return json(text);
  }

  Result<json> Integer(const YAML::Node& node, const std::string& text) {
    const bool negative = text[0] == '-';
    std::string digits = text.substr(negative || text[0] == '+' ? 1 : 0);
    int base = 10;
    if (digits.size() > 2 && digits[0] == '0') {
      base = digits[1] == 'x' ? 16 : digits[1] == 'o' ? 8 : 2;
      digits = digits.substr(2);
    }
    if (negative) digits.insert(0, "-");
    int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    if (error != std::errc() || end != digits.data() + digits.size()) {
      return Error(node.Mark(), text + " does not fit a 64-bit integer: quote it if it is a string");
    }
    return json(value);
  }

  YamlDocument* document_;
  int nodes_ = 0;
};

// Plain where nothing could read it as anything but this string; else in double quotes, as JSON has it.
std::string ScalarText(const json& value) {
  static const std::regex plain("[A-Za-z/][A-Za-z0-9_./-]*");
  if (!value.is_string()) return value.dump();
  const std::string& text = value.get_ref<const std::string&>();
  if (!std::regex_match(text, plain)) return value.dump();
  const auto documents = ParseYaml(text, "");
  return documents.ok() && documents->size() == 1 && *documents->at(0).value == value ? text : value.dump();
}

// Writes `value` from the current position on; what goes on below starts at column `indent`.
void WriteBlock(const json& value, size_t indent, std::string* text) {
  const std::string below(indent, ' ');
  if (!value.is_structured() || value.empty()) {
    *text += ScalarText(value) + "\n";
    return;
  }
  bool first = true;
  for (const auto& item : value.items()) {
    if (!std::exchange(first, false)) *text += below;
    if (value.is_array()) {
      *text += "- ";
      WriteBlock(item.value(), indent + 2, text);
      continue;
    }
    *text += ScalarText(item.key()) + ":";
    const bool nested = item.value().is_structured() && !item.value().empty();
    const size_t inner = indent + (item.value().is_array() ? 0 : 2);  // lists stand under their key
    *text += nested ? "\n" + std::string(inner, ' ') : " ";
    WriteBlock(item.value(), inner, text);
  }
}

}  // namespace

std::string YamlDocument::Where(std::string_view path) const {
  std::string at(path);
  auto found = places.find(at);
  while (found == places.end() && !at.empty()) {
    const size_t cut = at.find_last_of(".[");
    at.resize(cut == std::string::npos ? 0 : cut);
    found = places.find(at);
  }
  if (found == places.end()) return file;
  return file + ":" + std::to_string(found->second.line) + ":" + std::to_string(found->second.column);
}

Result<std::vector<YamlDocument>> ParseYaml(const std::string& text, const std::string& name) {
  std::vector<YamlDocument> documents;
  try {
    for (const YAML::Node& node : YAML::LoadAll(text)) {
      if (!node.IsDefined() || node.IsNull()) continue;
      YamlDocument document;
      document.file = name;
      ASSIGN_OR_RETURN(json value, Converter(&document).Convert(node, ""));
      document.value = std::make_shared<const json>(std::move(value));
      documents.push_back(std::move(document));
    }
  } catch (const YAML::Exception& e) {
    return InvalidArgument(name + ":" + std::to_string(e.mark.line + 1) + ":" + std::to_string(e.mark.column + 1) +
                           ": " + e.msg);
  }
  return documents;
}

Result<std::vector<YamlDocument>> ReadYamlFile(const std::string& path) {
  std::stringstream text;
  if (path == "-") {
    text << std::cin.rdbuf();
    return ParseYaml(text.str(), "standard input");
  }
  errno = 0;
  std::ifstream file(path);
  if (!file) return ErrnoStatus(errno != 0 ? errno : EIO, path);
  text << file.rdbuf();
  if (file.bad()) return ErrnoStatus(errno != 0 ? errno : EIO, path);
  return ParseYaml(text.str(), path);
}

std::string PrintYaml(const json& value) {
  std::string text;
  WriteBlock(value, 0, &text);
  return text;
}

}  // namespace headrace::cli
