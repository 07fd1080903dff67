#include "common/spec/object_reader.h"

#include <algorithm>
#include <cmath>

#include "common/base/words.h"

namespace headrace {
namespace {

const nlohmann::json& EmptyObject() {
  static const nlohmann::json empty = nlohmann::json::object();
  return empty;
}

// A value as the user wrote it, short enough for a message.
std::string Shown(const nlohmann::json& value) {
  std::string text = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

}  // namespace

ObjectReader::ObjectReader(const nlohmann::json& object, std::string path, std::vector<FieldError>* errors)
    : object_(object.is_object() ? object : EmptyObject()), path_(std::move(path)), errors_(errors) {
  if (!object.is_object()) errors_->push_back({path_, "must be an object, not " + Shown(object)});
}

ObjectReader::~ObjectReader() {
  const std::vector<std::string_view> known(known_.begin(), known_.end());
  for (const auto& [name, value] : object_.items()) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string nearest = NearestName(name, known);
    errors_->push_back({Path(name), nearest.empty() ? "unknown field; the fields here are " + QuotedList(known)
                                                    : "unknown field; did you mean \"" + nearest + "\"?"});
  }
}

bool ObjectReader::Has(std::string_view name) const {
  const auto it = object_.find(name);
  return it != object_.end() && !it->is_null();
}

const nlohmann::json* ObjectReader::Any(std::string_view name) {
  known_.emplace_back(name);
  return Has(name) ? &*object_.find(name) : nullptr;
}

const nlohmann::json* ObjectReader::Object(std::string_view name) {
  const nlohmann::json* value = Any(name);
  if (value != nullptr && !value->is_object()) {
    Error(name, "must be an object, not " + Shown(*value));
    return nullptr;
  }
  return value;
}

const nlohmann::json* ObjectReader::Array(std::string_view name, size_t min_items, size_t max_items) {
  const nlohmann::json* value = Any(name);
  if (value == nullptr) return nullptr;
  if (!value->is_array()) {
    Error(name, "must be a list, not " + Shown(*value));
    return nullptr;
  }
  if (value->size() < min_items || value->size() > max_items) {
    Error(name, "has " + std::to_string(value->size()) + " items; it takes " + std::to_string(min_items) + " to " +
                    std::to_string(max_items));
  }
  return value;
}

std::optional<int64_t> ObjectReader::Int(std::string_view name, int64_t min, int64_t max) {
  const nlohmann::json* value = Any(name);
  if (value == nullptr) return std::nullopt;
  const bool too_large = value->is_number_unsigned() && value->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX);
  if (!value->is_number_integer() || too_large || value->get<int64_t>() < min || value->get<int64_t>() > max) {
    Error(name, Shown(*value) + " is not a whole number from " + std::to_string(min) + " to " + std::to_string(max));
    return std::nullopt;
  }
  return value->get<int64_t>();
}

int64_t ObjectReader::RequiredInt(std::string_view name, int64_t min, int64_t max) {
  if (!Has(name)) {
    known_.emplace_back(name);
    Error(name, "is required: a whole number from " + std::to_string(min) + " to " + std::to_string(max));
    return min;
  }
  return Int(name, min, max).value_or(min);
}

std::optional<double> ObjectReader::Number(std::string_view name) {
  const nlohmann::json* value = Any(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number() || !std::isfinite(value->get<double>())) {
    Error(name, "must be a number, not " + Shown(*value));
    return std::nullopt;
  }
  return value->get<double>();
}

std::string ObjectReader::String(std::string_view name, size_t max_length) {
  return Has(name) ? RequiredString(name, max_length) : (Any(name), "");
}

bool ObjectReader::Bool(std::string_view name, bool otherwise) {
  const nlohmann::json* value = Any(name);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean()) {
    Error(name, "must be true or false, not " + Shown(*value));
    return otherwise;
  }
  return value->get<bool>();
}

std::string ObjectReader::RequiredString(std::string_view name, size_t max_length) {
  const nlohmann::json* value = Any(name);
  if (value == nullptr || !value->is_string() || value->get_ref<const std::string&>().empty() ||
      value->get_ref<const std::string&>().size() > max_length) {
    Error(name, (value == nullptr ? "is required" : Shown(*value) + " is not") + std::string(": a text of 1 to ") +
                    std::to_string(max_length) + " characters");
    return "";
  }
  return value->get<std::string>();
}

std::optional<size_t> ObjectReader::Choice(std::string_view name, const std::vector<std::string_view>& choices) {
  const nlohmann::json* value = Any(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) {
    const auto& text = value->get_ref<const std::string&>();
    const auto it = std::find(choices.begin(), choices.end(), text);
    if (it != choices.end()) return it - choices.begin();
    const std::string nearest = NearestName(text, choices);
    if (!nearest.empty()) {
      Error(name, Shown(*value) + " is not one of " + QuotedList(choices) + "; did you mean \"" + nearest + "\"?");
      return std::nullopt;
    }
  }
  Error(name, Shown(*value) + " is not one of " + QuotedList(choices));
  return std::nullopt;
}

std::string ObjectReader::Path(std::string_view name) const {
  return name.empty() ? path_ : path_ + "." + std::string(name);
}

void ObjectReader::Error(std::string_view name, std::string message) {
  errors_->push_back({Path(name), std::move(message)});
}

}  // namespace headrace
