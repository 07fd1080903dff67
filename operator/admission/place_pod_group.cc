// Kueue's groups of plain pods: the group is the run.
#include <nlohmann/json.hpp>

#include "operator/admission/places.h"
#include "operator/kube/object.h"

namespace headrace::op {
namespace {

constexpr char kGroup[] = "kueue.x-k8s.io/pod-group-name";
constexpr char kTotal[] = "kueue.x-k8s.io/pod-group-total-count";  // an annotation
constexpr char kIndex[] = "kueue.x-k8s.io/pod-group-pod-index";
constexpr char kIndexLabel[] = "kueue.x-k8s.io/pod-group-pod-index-label";  // an annotation: the label that has it

}  // namespace

Place PodGroupPlace(const PodFacts& facts) {
  const std::string group = kube::LabelOf(facts.pod, kGroup);
  if (group.empty()) return std::optional<World>();
  World world;
  world.owner = "PodGroup/" + group;
  world.run_id = world.owner;
  if (facts.workers) {
    world.num_workers = *facts.workers;
  } else {
    ASSIGN_OR_RETURN(world.num_workers, NumberIn(facts.pod, "annotations", kTotal));
  }
  if (world.num_workers > 1) {
    const std::string label = kube::AnnotationOf(facts.pod, kIndexLabel);
    ASSIGN_OR_RETURN(world.index, NumberIn(facts.pod, "labels", label.empty() ? kIndex : label));
  }
  return std::optional(world);
}

}  // namespace headrace::op
