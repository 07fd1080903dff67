// One line of a watch: an event with its object.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace headrace::kube {

// The event as JSON without any member "managedFields", which take up to half of it and are never looked at. Discarded
// (is_discarded) if the line is no JSON. Pure.
nlohmann::json ParseWatchLine(std::string_view line);

}  // namespace headrace::kube
