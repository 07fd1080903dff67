// The table of map's operations: for each, how it is read and written, and what type it gives.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "common/spec/object_reader.h"
#include "common/spec/plan.h"

namespace headrace {

Transformation ParseMap(ObjectReader& reader);
nlohmann::json MapToJson(const Transformation& transformation);

// The field that names an operation: "cast", "oneHot", ...
std::string_view MapOperationName(const MapOperation& operation);
// What `operation` makes of one record's `input`; the name stays. Errors: InvalidArgument, in words that follow
// "component \"x\" ".
Result<TensorSpec> MappedType(const MapOperation& operation, const TensorSpec& input);

}  // namespace headrace
