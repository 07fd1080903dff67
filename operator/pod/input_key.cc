#include "operator/pod/input_key.h"

#include <nlohmann/json.hpp>

#include "common/spec/names.h"
#include "operator/kube/object.h"

namespace headrace::op {
namespace {

std::string KeyOf(const nlohmann::json& object, const std::string& input) {
  return input.empty() ? "" : kube::NamespaceOf(object) + "/" + input;
}

}  // namespace

std::string InputKeyOf(const nlohmann::json& object) {
  return KeyOf(object, kube::LabelOf(object, names::kInputLabel));
}

std::string TemplateInputKeyOf(const nlohmann::json& job) {
  return KeyOf(job, kube::StringAt(job, {"spec", "template", "metadata", "labels", names::kInputLabel}));
}

}  // namespace headrace::op
