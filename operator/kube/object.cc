#include "operator/kube/object.h"

#include <charconv>
#include <nlohmann/json.hpp>

namespace headrace::kube {
namespace {

using nlohmann::json;

const json* Find(const json& object, std::initializer_list<std::string_view> path) {
  const json* at = &object;
  for (const std::string_view key : path) {
    if (!at->is_object()) return nullptr;
    const auto it = at->find(key);
    if (it == at->end()) return nullptr;
    at = &*it;
  }
  return at;
}

}  // namespace

std::string StringAt(const json& object, std::initializer_list<std::string_view> path) {
  const json* found = Find(object, path);
  return found && found->is_string() ? found->get<std::string>() : std::string();
}

bool HasAt(const json& object, std::initializer_list<std::string_view> path) {
  const json* found = Find(object, path);
  return found != nullptr && !found->is_null();
}

const json& ListAt(const json& object, std::initializer_list<std::string_view> path) {
  static const json empty = json::array();
  const json* found = Find(object, path);
  return found && found->is_array() ? *found : empty;
}

const json& ObjectAt(const json& object, std::initializer_list<std::string_view> path) {
  static const json empty = json::object();
  const json* found = Find(object, path);
  return found && found->is_object() ? *found : empty;
}

std::string NameOf(const json& object) { return StringAt(object, {"metadata", "name"}); }
std::string NamespaceOf(const json& object) { return StringAt(object, {"metadata", "namespace"}); }
std::string UidOf(const json& object) { return StringAt(object, {"metadata", "uid"}); }
std::string ResourceVersionOf(const json& object) { return StringAt(object, {"metadata", "resourceVersion"}); }
uint64_t VersionOf(const json& object) {
  const std::string text = ResourceVersionOf(object);
  uint64_t version = 0;
  std::from_chars(text.data(), text.data() + text.size(), version);
  return version;
}
std::string LabelOf(const json& object, std::string_view label) {
  return StringAt(object, {"metadata", "labels", label});
}
std::string AnnotationOf(const json& object, std::string_view annotation) {
  return StringAt(object, {"metadata", "annotations", annotation});
}

const json* ControllerOf(const json& object) {
  const json* owners = Find(object, {"metadata", "ownerReferences"});
  if (!owners || !owners->is_array()) return nullptr;
  for (const json& owner : *owners) {
    const json* controller = Find(owner, {"controller"});
    if (controller && controller->is_boolean() && controller->get<bool>()) return &owner;
  }
  return nullptr;
}

NamespacedName SplitKey(std::string_view key) {
  const size_t slash = key.find('/');
  if (slash == std::string_view::npos) return {"", std::string(key)};
  return {std::string(key.substr(0, slash)), std::string(key.substr(slash + 1))};
}

}  // namespace headrace::kube
