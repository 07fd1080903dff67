// The container of the user's dataset function (spec.source.function.container), as it runs beside the loader.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "common/spec/input_spec.h"

namespace headrace::op {

// What the restricted Pod Security Standard demands of a container.
nlohmann::json RestrictedSecurityContext();

// A native sidecar with the run directory mounted. It starts before the loader, which waits for it.
// REQUIRES: the function has a container (CheckForPods).
nlohmann::json FunctionContainer(const FunctionSource& function);

}  // namespace headrace::op
