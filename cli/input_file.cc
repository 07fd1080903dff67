#include "cli/input_file.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/yaml.h"
#include "common/base/words.h"
#include "common/spec/names.h"

namespace headrace::cli {
namespace {

using nlohmann::json;

std::string TextAt(const json& object, const char* outer, const char* inner = nullptr) {
  if (!object.is_object() || !object.contains(outer)) return "";
  const json& value = object[outer];
  if (inner != nullptr) return TextAt(value, inner);
  return value.is_string() ? value.get<std::string>() : "";
}

bool IsInput(const YamlDocument& document) { return TextAt(*document.value, "kind") == names::kKind; }

Result<YamlDocument> Choose(const std::vector<YamlDocument>& documents, const std::string& path,
                            const std::string& name) {
  std::vector<const YamlDocument*> inputs;
  std::string found;
  for (const YamlDocument& document : documents) {
    if (!IsInput(document)) continue;
    const std::string own = TextAt(*document.value, "metadata", "name");
    if (!name.empty() && own != name) continue;
    inputs.push_back(&document);
    found += (found.empty() ? "" : ", ") + own;
  }
  if (inputs.size() == 1) return *inputs[0];
  if (inputs.size() > 1) {
    return InvalidArgument(path + ": holds " + std::to_string(inputs.size()) + " inputs (" + found +
                           "): choose one with --input NAME");
  }
  if (!name.empty()) return NotFound(path + ": holds no " + names::kKind + " named \"" + name + "\"");
  std::string message = path + ": holds no object of kind " + names::kKind;
  for (const YamlDocument& document : documents) {
    const std::string kind = TextAt(*document.value, "kind");
    if (!NearestName(kind, {names::kKind}).empty()) {
      message = document.Where("kind") + ": kind \"" + kind + "\" is not known: did you mean " + names::kKind + "?";
    }
  }
  return NotFound(std::move(message));
}

Status CheckEnvelope(const YamlDocument& document) {
  const json& object = *document.value;
  const std::string wanted = std::string(names::kGroup) + "/" + names::kVersion;
  if (const std::string version = TextAt(object, "apiVersion"); version != wanted) {
    return InvalidArgument(document.Where("apiVersion") + ": apiVersion is \"" + version + "\"; this command reads " +
                           wanted);
  }
  for (const auto& [key, value] : object.items()) {
    const std::vector<std::string_view> known = {"apiVersion", "kind", "metadata", "spec", "status"};
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const std::string nearest = NearestName(key, known);
    return InvalidArgument(document.Where(key) + ": unknown field \"" + key + "\"" +
                           (nearest.empty() ? "" : ": did you mean \"" + nearest + "\"?"));
  }
  if (!object.contains("spec")) return InvalidArgument(document.Where("") + ": spec: is required");
  return Status();
}

}  // namespace

Result<LocalInput> LoadInput(const std::string& path, const std::string& name) {
  ASSIGN_OR_RETURN(const std::vector<YamlDocument> documents, ReadYamlFile(path));
  ASSIGN_OR_RETURN(const YamlDocument document, Choose(documents, path, name));
  RETURN_IF_ERROR(CheckEnvelope(document));
  std::vector<FieldError> errors;
  Result<InputSpec> spec = ParseInputSpec((*document.value)["spec"], &errors);
  if (!spec.ok()) {
    std::string message;
    for (const FieldError& error : errors) {
      message += (message.empty() ? "" : "\n") + document.Where(error.field) + ": " + error.ToString();
    }
    return InvalidArgument(message.empty() ? spec.status().message() : message);
  }
  LocalInput input;
  input.object = document.value;
  input.name = TextAt(*document.value, "metadata", "name");
  if (input.name.empty()) input.name = std::filesystem::path(path).filename();
  std::error_code error;
  const std::filesystem::path folder = path == "-" ? "." : std::filesystem::path(path).parent_path();
  input.data_directory = std::filesystem::absolute(folder.empty() ? "." : folder, error).lexically_normal();
  input.plan = CompilePlan(std::move(spec).value(), input.name);
  return input;
}

}  // namespace headrace::cli
