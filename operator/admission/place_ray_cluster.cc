// Workers of a RayCluster. In a worker group of several hosts a replica (such as a TPU slice) is a run, and its hosts
// are the workers; else the group is the run, and its replicas are. How many they are only the RayCluster says, which
// grows and shrinks: so the annotation headrace.dev/workers must.
#include <nlohmann/json.hpp>

#include "common/spec/names.h"
#include "operator/admission/places.h"
#include "operator/kube/object.h"

namespace headrace::op {
namespace {

using nlohmann::json;

constexpr char kCluster[] = "ray.io/cluster";
constexpr char kNodeType[] = "ray.io/node-type";
constexpr char kGroup[] = "ray.io/group";
constexpr char kReplicaIndex[] = "ray.io/worker-group-replica-index";
constexpr char kReplicaName[] = "ray.io/worker-group-replica-name";
constexpr char kHostIndex[] = "ray.io/replica-host-index";

}  // namespace

Place RayClusterPlace(const PodFacts& facts) {
  const json& pod = facts.pod;
  const std::string cluster = kube::LabelOf(pod, kCluster);
  if (cluster.empty() || kube::LabelOf(pod, kNodeType) != "worker") return std::optional<World>();
  const bool hosts = !kube::LabelOf(pod, kHostIndex).empty();
  const std::string group = kube::LabelOf(pod, hosts ? kReplicaName : kGroup);
  World world;
  world.owner = "RayCluster/" + cluster + "/" + group;
  if (!facts.workers) {
    return InvalidArgument("a worker of " + world.owner + " cannot tell how many " + (hosts ? "hosts" : "replicas") +
                           " there are: give the group's pod template the annotation " + names::kWorkersAnnotation +
                           " with the group's " + (hosts ? "numOfHosts" : "replicas"));
  }
  world.num_workers = *facts.workers;
  if (world.num_workers > 1 || hosts) {
    ASSIGN_OR_RETURN(world.index, NumberIn(pod, "labels", hosts ? kHostIndex : kReplicaIndex));
  }
  const json* owner_ref = kube::ControllerOf(pod);
  world.run_id = (owner_ref == nullptr ? cluster : kube::StringAt(*owner_ref, {"uid"})) + "/" + group;
  return std::optional(world);
}

}  // namespace headrace::op
