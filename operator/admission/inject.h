// What the webhook does to a pod, as a pure function: pod + plan -> JSON Patch (RFC 6902).
//
// The patch appends to the pod's lists and touches nothing else: a pod that is decoded and written again loses the
// fields that the program does not know, a native sidecar's restartPolicy among them.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/spec/plan.h"
#include "operator/admission/loader_resources.h"
#include "operator/admission/workload.h"

namespace headrace::op {

struct LoaderOptions {
  std::string image;
  std::string image_pull_policy;  // empty: Kubernetes' default
  ResourceDefaults resources = {};
  int64_t run_as_user = 65532;                  // not where spec.loader.securityContext or the pod's own says who
  int64_t run_volume_bytes = int64_t{1} << 30;  // the rings' volume, where their size is not known to be larger
};

// The patch that gives `pod` (or a pod template: an object with metadata and spec) its loader. `input` is the
// DistributedInput: its name, its volumes and the name of its Secret are used; all else comes from `plan`, to which the
// pod is pinned. An empty array if the pod has been injected before and nothing of it is missing; else what is left is
// taken out and all of it put in again. REQUIRES: CheckPodShape(pod) is ok (pod_shape.h). Errors: InvalidArgument where
// the pod already uses a name or path that Headrace needs, names a container that it does not have, or the loader is
// given too little memory for its rings.
Result<nlohmann::json> InjectPatch(const nlohmann::json& pod, const nlohmann::json& input, const Plan& plan,
                                   const World& world, const LoaderOptions& loader);

// What whoever creates the pod should know of what InjectPatch does to it; empty where there is nothing, or where
// InjectPatch fails.
std::vector<std::string> InjectWarnings(const nlohmann::json& pod, const InputSpec& spec);

// As the loader will be told: the spec's replicasPerWorker, else the trainers' nvidia.com/gpu limits, else 1 (how many
// GPUs a resource claim holds is not in the pod).
int64_t ReplicasPerWorker(const nlohmann::json& pod, const InputSpec& spec);

}  // namespace headrace::op
