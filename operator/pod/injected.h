// What an injected pod says of itself: read back from what the webhook wrote into it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace headrace::op {

// On the pods of a StatefulSet: which rollout made them. A set rolled out anew begins a new run under the same owner.
inline constexpr char kRevisionLabel[] = "controller-revision-hash";

// Whether all of the pod's containers have ended for good.
bool HasEnded(const nlohmann::json& pod);

// A variable of the pod's loader as the kubelet will resolve it: its value, or the label or UID that it refers to.
// Empty if there is none.
std::string LoaderVariable(const nlohmann::json& pod, std::string_view name);

// The run that the pod belongs to: the run id that its loader is told, else its controller's UID, else its own.
std::string RunIdOf(const nlohmann::json& pod);

// Who the run is, for people: "Job/train", "JobSet/train/worker", "Pod/alone".
std::string RunOwnerOf(const nlohmann::json& pod);

// What identifies the worker within its run: pods that replace one another share it.
std::string WorkerOf(const nlohmann::json& pod);

// Whole GPUs, shared ones ("nvidia.com/gpu.shared") and slices ("nvidia.com/mig-1g.10gb").
bool IsDevicePluginGpu(std::string_view resource);

// Whether any container of the pod's own asks for a GPU: by a limit, or by a resource claim, which may be one.
bool AsksForGpus(const nlohmann::json& pod);

// Keeps what reconciling and admission read of a pod, each piece once; the rest goes. A cluster's pods are many.
void SlimPod(nlohmann::json& pod);

}  // namespace headrace::op
