// Which input an object belongs to: "namespace/name", by its label; empty if it has none. The indexes of the caches.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace headrace::op {

// Of a pod, a plan's ConfigMap, a Service.
std::string InputKeyOf(const nlohmann::json& object);

// Of a Job: the input that the pods of its template are to use.
std::string TemplateInputKeyOf(const nlohmann::json& job);

}  // namespace headrace::op
