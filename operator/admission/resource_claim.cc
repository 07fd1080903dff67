#include "operator/admission/resource_claim.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "operator/kube/object.h"
#include "operator/pod/injected.h"

namespace headrace::op {
namespace {

using nlohmann::json;
using namespace nlohmann::literals;  // NOLINT: the literal "..."_json_pointer

Status CheckNoDevicePluginGpu(const json& pod, const TrainerIndexes& trainers, const Delivery& delivery) {
  const bool device = delivery.memory == MemoryKind::kDevice;
  for (const size_t i : trainers) {
    const json& container = pod.at("spec").at("containers")[i];
    const json limits = container.value("/resources/limits"_json_pointer, json::object());
    for (const auto& [resource, quantity] : limits.items()) {
      if (!IsDevicePluginGpu(resource)) continue;
      return InvalidArgument(
          "spec.containers[" + std::to_string(i) + "].resources.limits: container \"" +
          kube::StringAt(container, {"name"}) + "\" has " + resource + ": " + quantity.dump() +
          ", which gives a GPU to this container alone, so the loader could not see the same one, as the input's " +
          (device ? "spec.delivery.memory: Device" : "spec.delivery.resourceClaim: " + delivery.resource_claim) +
          " demands; instead of the limit, give the pod spec.resourceClaims: [{name: gpu, resourceClaimTemplateName: "
          "TEMPLATE}] with a ResourceClaimTemplate of yours, which loader and trainers then share, or " +
          (device ? "set spec.delivery.memory to Auto" : "leave spec.delivery.resourceClaim out") +
          ", for which the loader needs no GPU");
    }
  }
  return {};
}

// The name of the pod's claim that holds the GPUs.
Result<std::string> ClaimName(const json& pod, const Delivery& delivery) {
  const json& claims = kube::ListAt(pod, {"spec", "resourceClaims"});
  std::string known;
  for (const json& claim : claims) {
    const std::string name = kube::StringAt(claim, {"name"});
    if (name == delivery.resource_claim) return name;
    known += (known.empty() ? "" : ", ") + name;
  }
  if (claims.empty()) {
    return InvalidArgument(
        "spec.resourceClaims: the pod has none, and the input's " +
        (delivery.resource_claim.empty()
             ? std::string("spec.delivery.memory: Device demands a GPU that loader and trainers share")
             : "spec.delivery.resourceClaim names \"" + delivery.resource_claim + "\"") +
        "; add the claim of the trainers' GPUs: [{name: " +
        (delivery.resource_claim.empty() ? "gpu" : delivery.resource_claim) +
        ", resourceClaimTemplateName: TEMPLATE}]");
  }
  if (!delivery.resource_claim.empty()) {
    return InvalidArgument("spec.resourceClaims: the pod has no claim \"" + delivery.resource_claim +
                           "\", which the input's spec.delivery.resourceClaim names: its claims are " + known);
  }
  if (claims.size() > 1) {
    return InvalidArgument("spec.resourceClaims: the pod has " + std::to_string(claims.size()) + " claims, " + known +
                           ": say which holds the trainers' GPUs in the input's spec.delivery.resourceClaim");
  }
  return known;
}

// The request that all trainers that name the claim name of it.
std::string CommonRequest(const json& pod, const TrainerIndexes& trainers, const std::string& claim) {
  std::optional<std::string> common;
  for (const size_t i : trainers) {
    for (const json& entry : kube::ListAt(pod.at("spec").at("containers")[i], {"resources", "claims"})) {
      if (kube::StringAt(entry, {"name"}) != claim) continue;
      const std::string request = kube::StringAt(entry, {"request"});
      if (common && *common != request) return "";  // each has a part, the loader needs all
      common = request;
    }
  }
  return common.value_or("");
}

std::optional<int64_t> CommonUser(const json& pod, const TrainerIndexes& trainers) {
  const json of_pod = pod.value("/spec/securityContext/runAsUser"_json_pointer, json());
  std::optional<int64_t> common;
  for (const size_t i : trainers) {
    const json user = pod.at("spec").at("containers")[i].value("/securityContext/runAsUser"_json_pointer, of_pod);
    if (!user.is_number_integer() || user == 0 || (common && user != *common)) return {};
    common = user.get<int64_t>();
  }
  return common;
}

}  // namespace

Result<std::optional<SharedClaim>> FindSharedClaim(const json& pod, const TrainerIndexes& trainers,
                                                   const Delivery& delivery) {
  if (delivery.memory != MemoryKind::kDevice && delivery.resource_claim.empty()) return std::optional<SharedClaim>();
  RETURN_IF_ERROR(CheckNoDevicePluginGpu(pod, trainers, delivery));
  SharedClaim claim;
  ASSIGN_OR_RETURN(claim.name, ClaimName(pod, delivery));
  claim.request = CommonRequest(pod, trainers, claim.name);
  claim.user = CommonUser(pod, trainers);
  return std::optional(std::move(claim));
}

json ClaimEntry(const SharedClaim& claim) {
  json entry = {{"name", claim.name}};
  if (!claim.request.empty()) entry["request"] = claim.request;
  return entry;
}

bool NamesClaim(const json& container, const SharedClaim& claim) {
  const json& claims = kube::ListAt(container, {"resources", "claims"});
  return std::any_of(claims.begin(), claims.end(),
                     [&](const json& entry) { return kube::StringAt(entry, {"name"}) == claim.name; });
}

void AddClaim(const SharedClaim& claim, json* loader) {
  (*loader)["resources"]["claims"] = json::array({ClaimEntry(claim)});
  if (claim.user) (*loader)["securityContext"]["runAsUser"] = *claim.user;
}

std::vector<std::string> ClaimWarnings(const SharedClaim& claim) {
  std::vector<std::string> warnings = {"headrace: loader and trainers share the GPUs of claim \"" + claim.name +
                                       "\": without MPS they take turns on them, and each waits for the other's "
                                       "work"};
  if (!claim.user) {
    warnings.push_back(
        "headrace: the loader runs as another user than the trainers, which do not all have one runAsUser above 0: "
        "under MPS, which serves one user at a time, it would wait until they end");
  }
  return warnings;
}

}  // namespace headrace::op
