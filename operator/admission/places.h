// How each kind of workload tells its pods their places. One function a kind; nothing if the pod is not of that kind.
// The labels are those that the kind's own controller writes, at the latest before the pod is created.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "operator/admission/workload.h"

namespace headrace::op {

// What a place is found from.
struct PodFacts {
  const nlohmann::json& pod;
  std::optional<int64_t> workers;  // the annotation headrace.dev/workers
  const FindOwner& find_owner;
};
using Place = Result<std::optional<World>>;

Place JobPlace(const PodFacts& facts);              // place_indexed.cc: Job, StatefulSet: one label, the owner's size
Place JobSetPlace(const PodFacts& facts);           // place_job_set.cc: JobSet, and TrainJob, which is made of one
Place LeaderWorkerSetPlace(const PodFacts& facts);  // place_leader_worker_set.cc: a group is a run
Place PyTorchJobPlace(const PodFacts& facts);       // place_pytorch_job.cc
Place RayClusterPlace(const PodFacts& facts);  // place_ray_cluster.cc: a worker group, or a replica of several hosts
Place PodGroupPlace(const PodFacts& facts);    // place_pod_group.cc: Kueue's groups of plain pods

inline constexpr char kCompletionIndexLabel[] = "batch.kubernetes.io/job-completion-index";
inline constexpr char kPodIndexLabel[] = "apps.kubernetes.io/pod-index";

// The annotation headrace.dev/workers, if the pod (or template) has it. Errors: InvalidArgument.
Result<std::optional<int64_t>> AnnotatedWorkers(const nlohmann::json& pod);
// The whole number in `text`, at least 0; nothing if it is none.
std::optional<int64_t> WholeNumber(std::string_view text);
// The number in a label or annotation that the pod's workload writes. `where` is "labels" or "annotations". Errors:
// InvalidArgument naming it, where it is absent or no whole number.
Result<int64_t> NumberIn(const nlohmann::json& pod, const char* where, const std::string& key);
// The value of a variable that some container of the pod is given as it is; empty if none has it.
std::string VariableOf(const nlohmann::json& pod, std::string_view name);
// Whether `owner` (an ownerReference; may be null) is of that API group and kind.
bool IsOf(const nlohmann::json* owner, std::string_view group, std::string_view kind);
// A number in the spec of an owner, `otherwise` where there is none.
int64_t SpecNumber(const nlohmann::json& owner, std::initializer_list<std::string_view> path, int64_t otherwise);
// The owner is needed and has not been seen yet.
Status OwnerNotSeen(const nlohmann::json& owner_ref);

}  // namespace headrace::op
