// What the loader's container asks the node for. The rings lie in memory, which counts against the container that
// writes it: the loader.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/spec/plan.h"

namespace headrace::op {

// The operator's defaults, for inputs that do not say it in spec.loader.resources.
struct ResourceDefaults {
  std::string cpu_request = "100m";
  std::string cpu_limit;                             // empty: none
  int64_t memory_request_bytes = int64_t{64} << 20;  // beside the rings
  std::optional<int64_t> memory_limit_bytes = {};    // beside the rings; none: by the estimate, where there is one
};

// {"requests": .., "limits": ..}: what `input` says in spec.loader.resources stands as it is; of the rest,
//   memory request  the rings as far as their size is certain, and the loader's own estimate, at least the default
//   memory limit    the rings at their largest, and the default, or twice the estimate and some room; none where there
//                   is neither
// Errors: InvalidArgument where a quantity is none, or the limit does not hold the rings.
Result<nlohmann::json> LoaderResources(const nlohmann::json& input, const Plan& plan, const Topology& run,
                                       const ResourceDefaults& defaults);

// Bytes of a Kubernetes quantity ("512Mi", "1.5G", 1000); fractions of a byte are rounded up. Errors: InvalidArgument.
Result<int64_t> QuantityBytes(const nlohmann::json& quantity);

}  // namespace headrace::op
