// spec.onError: what becomes of records that are not what their format and features demand.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "common/spec/input_spec.h"

namespace headrace {

OnError ParseOnError(const nlohmann::json& object, const std::string& path, std::vector<FieldError>* errors);
nlohmann::json OnErrorToJson(const OnError& on_error);
// The rules between it and other fields.
void CheckOnError(const InputSpec& spec, std::vector<FieldError>* errors);

}  // namespace headrace
