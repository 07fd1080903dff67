// The dataset function of a from_function case: what tf.data would make of the case's source and transforms, element by
// element, served as a user's own program would serve it.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "common/base/status.h"

namespace headrace::cli {

// Serves the case (one line of a cases file) to the loader in $HEADRACE_DIR until that ends. Errors: those of the
// connection; what is wrong with the case goes to the loader, as a user's error would.
Status ServeCaseFunction(const nlohmann::json& conformance_case);

}  // namespace headrace::cli
