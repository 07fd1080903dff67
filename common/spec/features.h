// How the features of a record are read and written in the spec.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "common/spec/input_spec.h"

namespace headrace {

inline constexpr size_t kMaxFeatures = 128;

std::vector<Feature> ParseFeatures(const nlohmann::json& list, const std::string& path,
                                   std::vector<FieldError>* errors);
nlohmann::json FeaturesToJson(const std::vector<Feature>& features);

}  // namespace headrace
