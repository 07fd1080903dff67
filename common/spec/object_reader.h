// Reads the fields of one JSON object, strictly: wrong types, values out of bounds, missing and unknown fields each
// become a FieldError with the field's path and a remedy. Reading goes on after an error, so that a user sees all at
// once.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/spec/input_spec.h"

namespace headrace {

class ObjectReader {
 public:
  // `object` and `errors` must outlive the reader. A value that is not an object is an error and reads as empty.
  ObjectReader(const nlohmann::json& object, std::string path, std::vector<FieldError>* errors);
  // Reports the fields that nothing asked for.
  ~ObjectReader();
  ObjectReader(const ObjectReader&) = delete;
  ObjectReader& operator=(const ObjectReader&) = delete;

  bool Has(std::string_view name) const;
  // The field's value, or null if it is absent. Marks it as known.
  const nlohmann::json* Any(std::string_view name);
  const nlohmann::json* Object(std::string_view name);
  const nlohmann::json* Array(std::string_view name, size_t min_items, size_t max_items);

  std::optional<int64_t> Int(std::string_view name, int64_t min, int64_t max);
  int64_t RequiredInt(std::string_view name, int64_t min, int64_t max);
  // A finite number.
  std::optional<double> Number(std::string_view name);
  bool Bool(std::string_view name, bool otherwise);
  std::string String(std::string_view name, size_t max_length);  // "" if absent
  std::string RequiredString(std::string_view name, size_t max_length);

  // One of `choices`, or `otherwise` if absent; an error names the nearest choice.
  template <typename E>
  E Enum(std::string_view name, std::initializer_list<std::pair<std::string_view, E>> choices, E otherwise) {
    std::vector<std::string_view> names;
    for (const auto& choice : choices) names.push_back(choice.first);
    const std::optional<size_t> chosen = Choice(name, names);
    return chosen ? (choices.begin() + *chosen)->second : otherwise;
  }

  // Which of `choices`; none if absent or an error.
  std::optional<size_t> Choice(std::string_view name, const std::vector<std::string_view>& choices);

  std::string Path(std::string_view name) const;
  void Error(std::string_view name, std::string message);      // name "": the object itself
  std::vector<FieldError>* errors() const { return errors_; }  // for the readers of objects within

 private:
  const nlohmann::json& object_;
  const std::string path_;
  std::vector<FieldError>* const errors_;
  std::vector<std::string> known_;
};

}  // namespace headrace
