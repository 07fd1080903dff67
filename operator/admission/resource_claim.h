// A GPU for the loader and the trainers of a pod alike: one claim of resource.k8s.io that all of them name.
//
// Nothing else can be shared between containers without privileges: a GPU of a device plugin's limit belongs to the one
// container that has the limit (docs/decisions/0023-one-claim-two-containers.md).
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/spec/input_spec.h"

namespace headrace::op {

// The containers that read batches, as indexes into the pod's spec.containers.
using TrainerIndexes = std::vector<size_t>;

struct SharedClaim {
  std::string name;     // of an entry of the pod's spec.resourceClaims
  std::string request;  // the one request of the claim that trainers name; empty: the claim as a whole
  // The user that all trainers run as, where that is known and not root. The loader takes it: an MPS server serves the
  // processes of one user, and lets others wait until those have ended.
  std::optional<int64_t> user;
};

// The claim to share, if `delivery` asks for one. Errors: InvalidArgument where the pod has no such claim or more than
// could be meant, or a trainer has a GPU of a device plugin.
Result<std::optional<SharedClaim>> FindSharedClaim(const nlohmann::json& pod, const TrainerIndexes& trainers,
                                                   const Delivery& delivery);

// What a container's resources.claims holds to get it.
nlohmann::json ClaimEntry(const SharedClaim& claim);

bool NamesClaim(const nlohmann::json& container, const SharedClaim& claim);

// Gives the claim, and the trainers' user, to the loader's container, as it is before it becomes part of a pod.
void AddClaim(const SharedClaim& claim, nlohmann::json* loader);

// What sharing the GPU means for whoever creates the pod, in sentences of at most 256 characters, which is where the
// API server may cut a warning.
std::vector<std::string> ClaimWarnings(const SharedClaim& claim);

}  // namespace headrace::op
