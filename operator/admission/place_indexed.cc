// Job and StatefulSet: the index is in one label, the size in the owner's spec. Both name their pods OWNER-INDEX, and
// set that as their host name.
#include <nlohmann/json.hpp>

#include "common/spec/names.h"
#include "operator/admission/places.h"
#include "operator/kube/object.h"

namespace headrace::op {
namespace {

using nlohmann::json;

struct Workload {
  std::string_view group;
  std::string_view kind;
  std::string_view index_label;   // on each pod: its index
  std::string_view run_id_label;  // on each pod: the owner's UID; empty where the workload has no such label
  std::string_view size;          // in the owner's spec: the number of pods that make a run, 1 if absent
  std::string_view remedy;        // for pods without the index label
};

constexpr Workload kWorkloads[] = {
    {"batch", "Job", kCompletionIndexLabel, "batch.kubernetes.io/controller-uid", "completions",
     "set spec.completionMode: Indexed and spec.completions on the Job"},
    {"apps", "StatefulSet", kPodIndexLabel, "", "replicas",
     "Kubernetes 1.31 or later sets that label on the pods of a StatefulSet"},
};

const Workload* FindWorkload(const json& owner) {
  for (const Workload& workload : kWorkloads) {
    if (IsOf(&owner, workload.group, workload.kind)) return &workload;
  }
  return nullptr;
}

// Where a StatefulSet begins to count.
int64_t FirstIndex(const json& owner) { return SpecNumber(owner, {"ordinals", "start"}, 0); }

}  // namespace

Place JobPlace(const PodFacts& facts) {
  const json* owner_ref = kube::ControllerOf(facts.pod);
  const Workload* workload = owner_ref == nullptr ? nullptr : FindWorkload(*owner_ref);
  if (workload == nullptr) return std::optional<World>();
  const std::string kind(workload->kind), name = kube::StringAt(*owner_ref, {"name"});
  World world;
  world.run_id = kube::StringAt(*owner_ref, {"uid"});
  world.index_label = workload->index_label;
  world.first_host = name + "-0";
  if (facts.workers) {
    world.num_workers = *facts.workers;
  } else {
    const auto owner = facts.find_owner(kind, name);
    if (owner == nullptr) return OwnerNotSeen(*owner_ref);
    world.num_workers = SpecNumber(*owner, {workload->size}, 1);
    if (const int64_t first = FirstIndex(*owner); first > 0) {
      ASSIGN_OR_RETURN(const int64_t ordinal, NumberIn(facts.pod, "labels", world.index_label));
      world.index_label.clear();
      world.index = ordinal - first;
      world.first_host = name + "-" + std::to_string(first);
      return std::optional(world);
    }
  }
  if (kube::LabelOf(facts.pod, workload->index_label).empty()) {
    if (world.num_workers > 1) {
      return InvalidArgument(kind + "/" + name + " has " + std::to_string(world.num_workers) +
                             " workers, but its pods lack the label " + std::string(workload->index_label) +
                             ", so none knows its part of the data: " + std::string(workload->remedy));
    }
    world.index_label.clear();
  }
  return std::optional(world);
}

// Declared in workload.h.
Result<World> WorldOfTemplate(const json& owner, const json& pod_template) {
  ASSIGN_OR_RETURN(const std::optional<int64_t> annotated, AnnotatedWorkers(pod_template));
  const std::string kind = kube::StringAt(owner, {"kind"}), name = kube::NameOf(owner);
  const Workload* workload = FindWorkload(owner);
  World world;
  world.run_id = kind + "/" + name;
  world.coordinator = kube::AnnotationOf(pod_template, names::kCoordinatorAnnotation);
  if (!name.empty()) world.first_host = name + "-0";
  if (workload == nullptr) {
    world.num_workers = annotated.value_or(1);
    if (world.num_workers > 1) {
      return InvalidArgument("a " + kind + " gives its pods no index: use an Indexed Job or a StatefulSet for " +
                             std::to_string(world.num_workers) + " workers");
    }
    return world;
  }
  if (FirstIndex(owner) > 0) {
    return InvalidArgument(kind + "/" + name + ": spec.ordinals.start: " + std::to_string(FirstIndex(owner)) +
                           ": a template cannot count from there; let the webhook inject the pods, or count from 0");
  }
  world.num_workers = annotated.value_or(SpecNumber(owner, {workload->size}, 1));
  world.subdomain = kube::StringAt(owner, {"spec", "serviceName"});
  world.run_id_label = workload->run_id_label;
  const bool indexed = kind != "Job" || kube::StringAt(owner, {"spec", "completionMode"}) == "Indexed";
  if (indexed) {
    world.index_label = workload->index_label;
  } else if (world.num_workers > 1) {
    return InvalidArgument("Job/" + name + " has " + std::to_string(world.num_workers) +
                           " workers without an index: " + std::string(workload->remedy));
  }
  return world;
}

}  // namespace headrace::op
