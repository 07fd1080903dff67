// LeaderWorkerSet: each group, a leader and its workers, is a run; the leader is worker 0. The pods belong to
// StatefulSets: the leaders' counts groups, a group's counts its workers from 1.
#include <nlohmann/json.hpp>

#include "common/spec/names.h"
#include "operator/admission/places.h"
#include "operator/kube/object.h"

namespace headrace::op {
namespace {

using nlohmann::json;

constexpr char kSet[] = "leaderworkerset.sigs.k8s.io/name";
constexpr char kWorkerIndex[] = "leaderworkerset.sigs.k8s.io/worker-index";
constexpr char kRevision[] = "leaderworkerset.sigs.k8s.io/template-revision-hash";
constexpr char kSize[] = "leaderworkerset.sigs.k8s.io/size";
constexpr char kLeader[] = "leaderworkerset.sigs.k8s.io/leader-name";  // an annotation of workers
constexpr char kSubdomainPolicy[] = "leaderworkerset.sigs.k8s.io/subdomainPolicy";

// Its own webhook sets the label, maybe after ours was asked.
Result<int64_t> IndexOf(const json& pod) {
  if (kube::AnnotationOf(pod, kLeader).empty()) return int64_t{0};
  return NumberIn(pod, "labels", kube::LabelOf(pod, kWorkerIndex).empty() ? kPodIndexLabel : kWorkerIndex);
}

}  // namespace

Place LeaderWorkerSetPlace(const PodFacts& facts) {
  const json& pod = facts.pod;
  const std::string set = kube::LabelOf(pod, kSet);
  if (set.empty()) return std::optional<World>();
  World world;
  ASSIGN_OR_RETURN(world.index, IndexOf(pod));
  if (facts.workers) {
    world.num_workers = *facts.workers;
  } else {
    ASSIGN_OR_RETURN(world.num_workers, NumberIn(pod, "annotations", kSize));
  }
  std::string leader = kube::AnnotationOf(pod, kLeader);
  if (leader.empty()) leader = kube::NameOf(pod);
  world.first_host = leader;
  // Each group then has a subdomain, and gives it to its leader only after our webhook was asked.
  if (kube::AnnotationOf(pod, kSubdomainPolicy) == "UniquePerReplica") {
    world.coordinator = leader + "." + leader + ":" + std::to_string(names::kPeersPort);
  }
  world.owner = "LeaderWorkerSet/" + leader;
  // The group's pods have no UID in common.
  world.run_id = world.owner + "/" + kube::LabelOf(pod, kRevision);
  return std::optional(world);
}

}  // namespace headrace::op
