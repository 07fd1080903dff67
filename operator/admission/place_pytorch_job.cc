// PyTorchJob (Kubeflow's training operator v1): the master, if there is one, is worker 0, and worker i is i + 1, as in
// the RANK that its controller sets. The number of pods is in the environment that it gives them.
#include <nlohmann/json.hpp>

#include "common/spec/names.h"
#include "operator/admission/places.h"
#include "operator/kube/object.h"

namespace headrace::op {
namespace {

using nlohmann::json;

constexpr size_t kLongestHost = 63;
constexpr char kReplicaType[] = "training.kubeflow.org/replica-type";
constexpr char kReplicaIndex[] = "training.kubeflow.org/replica-index";

// PET_NNODES may be a range, of an elastic job. WORLD_SIZE counts pods unless there are several processes in each.
std::optional<int64_t> SizeOf(const json& pod) {
  if (const auto nodes = WholeNumber(VariableOf(pod, "PET_NNODES"))) return nodes;
  return VariableOf(pod, "PET_NPROC_PER_NODE").empty() ? WholeNumber(VariableOf(pod, "WORLD_SIZE")) : std::nullopt;
}

}  // namespace

Place PyTorchJobPlace(const PodFacts& facts) {
  const json& pod = facts.pod;
  const json* owner_ref = kube::ControllerOf(pod);
  if (!IsOf(owner_ref, "kubeflow.org", "PyTorchJob")) return std::optional<World>();
  const std::string job = kube::StringAt(*owner_ref, {"name"});
  World world;
  world.run_id = kube::StringAt(*owner_ref, {"uid"});
  ASSIGN_OR_RETURN(const int64_t index, NumberIn(pod, "labels", kReplicaIndex));
  const bool master = !VariableOf(pod, "RANK").empty();  // set only where there is one
  world.index = index + (master && kube::LabelOf(pod, kReplicaType) == "worker" ? 1 : 0);
  const std::optional<int64_t> size = facts.workers ? facts.workers : SizeOf(pod);
  if (!size) {
    return InvalidArgument("PyTorchJob/" + job +
                           " does not tell its pods how many they are (it is elastic): give the " + "annotation " +
                           names::kWorkersAnnotation);
  }
  world.num_workers = *size;
  // The name is the host's without being said; said, it is found in the subdomain. Longer ones are none.
  if (const std::string name = kube::NameOf(pod); name.size() <= kLongestHost && name.find('.') == std::string::npos) {
    world.host = name;
    world.first_host = job + (master ? "-master-0" : "-worker-0");
  }
  return std::optional(world);
}

}  // namespace headrace::op
