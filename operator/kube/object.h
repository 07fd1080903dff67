// A view of the metadata of an object given as JSON. Absent or mistyped fields read as empty, never throw.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace headrace::kube {

std::string NameOf(const nlohmann::json& object);
std::string NamespaceOf(const nlohmann::json& object);
std::string UidOf(const nlohmann::json& object);
std::string ResourceVersionOf(const nlohmann::json& object);
// The same as a number: those of one kind of object grow (KEP-5504). 0: it has none.
uint64_t VersionOf(const nlohmann::json& object);
std::string LabelOf(const nlohmann::json& object, std::string_view label);
std::string AnnotationOf(const nlohmann::json& object, std::string_view annotation);

// The string at object[a][b]...; empty if there is none.
std::string StringAt(const nlohmann::json& object, std::initializer_list<std::string_view> path);
// Whether there is a value; null is none.
bool HasAt(const nlohmann::json& object, std::initializer_list<std::string_view> path);
// The list, or the object, there; an empty one if there is none. Points into `object`, or lives for ever.
const nlohmann::json& ListAt(const nlohmann::json& object, std::initializer_list<std::string_view> path);
const nlohmann::json& ObjectAt(const nlohmann::json& object, std::initializer_list<std::string_view> path);

// The ownerReference with controller: true; null if none. Points into `object`.
const nlohmann::json* ControllerOf(const nlohmann::json& object);

// Splits "namespace/name". An unqualified key has an empty namespace.
struct NamespacedName {
  std::string name_space;
  std::string name;
};
NamespacedName SplitKey(std::string_view key);

}  // namespace headrace::kube
