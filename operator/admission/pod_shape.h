// Whether what a pod is injected by has the types that it should have. The API server sends nothing else; a caller of
// the webhook that is none, or a file, may.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "common/base/status.h"

namespace headrace::op {

// What FindWorld, InjectPatch and InjectWarnings read of a pod. Errors: InvalidArgument naming the first field of
// another type, its value, and the type that it should have: "spec.containers[0].env: 5 is a number: write a list of
// objects".
Status CheckPodShape(const nlohmann::json& pod);

// The same of an AdmissionReview's request, but for what is in its object: "request.dryRun: ...".
Status CheckRequestShape(const nlohmann::json& request);

// The same of a Job, or another owner with a pod's template in spec.template, as WorldOfTemplate reads it; or of a
// JobSet.
Status CheckOwnerShape(const nlohmann::json& owner);

}  // namespace headrace::op
