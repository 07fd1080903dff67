// TensorSpec as text and as JSON, as both sides of a ring know it.
#include <nlohmann/json.hpp>

#include "common/spec/plan.h"

namespace headrace {

using nlohmann::json;

std::string TensorSpec::ToString() const {
  std::string dims;
  for (size_t i = 0; i < shape.size(); ++i) {
    dims += (i > 0 ? ", " : "") + (shape[i] == kUnknownDim ? "None" : std::to_string(shape[i]));
  }
  const std::string type = "tf." + std::string(DTypeName(dtype));
  if (ragged) return "RaggedTensorSpec(TensorShape([" + dims + "]), " + type + ", 1, tf.int64)";
  if (shape.size() == 1) dims += ",";
  return "TensorSpec(shape=(" + dims + "), dtype=" + type + ", name=None)";
}

std::string ToString(const std::vector<TensorSpec>& element_spec) {
  if (element_spec.size() == 1) return element_spec[0].ToString();
  std::string text = "(";
  for (size_t i = 0; i < element_spec.size(); ++i) text += (i > 0 ? ", " : "") + element_spec[i].ToString();
  return text + ")";
}

json ToJson(const std::vector<TensorSpec>& element_spec) {
  json list = json::array();
  for (const TensorSpec& component : element_spec) {
    json& item = list.emplace_back(
        json{{"name", component.name}, {"dtype", DTypeName(component.dtype)}, {"shape", component.shape}});
    if (component.ragged) item["ragged"] = true;
  }
  return list;
}

Result<std::vector<TensorSpec>> ParseElementSpec(const json& element_spec) {
  std::vector<TensorSpec> components;
  if (!element_spec.is_array()) return InvalidArgument("an element spec must be a list");
  for (const json& item : element_spec) {
    const json name = item.is_object() ? item.value("name", json()) : json();
    const json dtype = item.is_object() ? item.value("dtype", json()) : json();
    const json shape = item.is_object() ? item.value("shape", json()) : json();
    const json ragged = item.is_object() ? item.value("ragged", json(false)) : json();
    const std::string type = dtype.is_string() ? dtype.get<std::string>() : "";
    const auto parsed = type == DTypeName(DType::kString) ? std::optional(DType::kString) : ParseDType(type);
    bool whole = shape.is_array();
    for (const json& dim : shape) whole = whole && dim.is_number_integer();
    if (!name.is_string() || !parsed || !whole || !ragged.is_boolean()) {
      return InvalidArgument("not a tensor spec: " + item.dump());
    }
    TensorSpec spec{name.get<std::string>(), *parsed, shape.get<std::vector<int64_t>>(), ragged.get<bool>()};
    if (spec.ragged && (spec.dtype == DType::kString || spec.shape.size() < 2 || spec.shape[1] != kUnknownDim)) {
      return InvalidArgument("not a ragged tensor spec: " + item.dump());
    }
    components.push_back(std::move(spec));
  }
  return components;
}

}  // namespace headrace
