#include "operator/admission/workload.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "common/spec/names.h"
#include "operator/admission/places.h"
#include "operator/kube/object.h"

namespace headrace::op {
namespace {

using nlohmann::json;

// The first that knows the pod: kinds that are made of others come before them.
constexpr Place (*kKinds[])(const PodFacts&) = {JobSetPlace,     LeaderWorkerSetPlace, JobPlace,
                                                PyTorchJobPlace, RayClusterPlace,      PodGroupPlace};

Status BadAnnotation(const char* annotation, const std::string& value, const std::string& why) {
  return InvalidArgument(std::string("metadata.annotations[") + annotation + "]: \"" + value + "\" " + why);
}

// Worker 0's host, told from the host name of worker `index`: controllers end the names of their pods with the index.
std::string FirstHost(const std::string& host, const std::string& index) {
  const std::string end = "-" + index;
  if (index.empty() || host.size() <= end.size() || !host.ends_with(end)) return "";
  return host.substr(0, host.size() - index.size()) + "0";
}

// A host name for a worker whose workload gives none: the same of every replica of the operator (FNV-1a).
std::string HostOf(const std::string& run_id, int64_t index) {
  uint64_t hash = 14695981039346656037u;
  for (const char c : run_id) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return std::string("headrace-") + text + "-" + std::to_string(index);
}

// The annotations alone say it.
Result<World> AnnotatedPlace(const PodFacts& facts, const std::string& text) {
  World world;
  const std::optional<int64_t> index = WholeNumber(text);
  if (!index) return BadAnnotation(names::kWorkerIndexAnnotation, text, "is not an index: write a number from 0");
  if (!facts.workers) {
    return BadAnnotation(names::kWorkerIndexAnnotation, text,
                         std::string("needs the number of workers with it: give ") + names::kWorkersAnnotation);
  }
  world.index = *index;
  world.num_workers = *facts.workers;
  return world;
}

// An owner that we do not know: it may still set an index label that we do.
Result<World> UnknownPlace(const PodFacts& facts) {
  World world;
  for (const char* label : {kCompletionIndexLabel, kPodIndexLabel}) {
    if (!kube::LabelOf(facts.pod, label).empty()) world.index_label = label;
  }
  world.num_workers = facts.workers.value_or(1);
  if (world.index_label.empty() && world.num_workers > 1) {
    return InvalidArgument(
        std::string("metadata.annotations[") + names::kWorkersAnnotation + "]: " + std::to_string(world.num_workers) +
        " workers, but the pod has no index among them: use an Indexed Job or a StatefulSet, or give "
        "each pod its own in the annotation " +
        names::kWorkerIndexAnnotation);
  }
  return world;
}

Result<World> Find(const PodFacts& facts) {
  if (const std::string text = kube::AnnotationOf(facts.pod, names::kWorkerIndexAnnotation); !text.empty()) {
    return AnnotatedPlace(facts, text);
  }
  for (const auto kind : kKinds) {
    ASSIGN_OR_RETURN(const std::optional<World> world, kind(facts));
    if (world) return *world;
  }
  return UnknownPlace(facts);
}

// What all kinds have in common: the user's word on the run, and names for pods that nobody named.
Status Complete(const PodFacts& facts, World& world) {
  const json& pod = facts.pod;
  const std::string run = kube::AnnotationOf(pod, names::kRunAnnotation);
  const json* owner_ref = kube::ControllerOf(pod);
  if (!run.empty()) {
    world.run_id = run;
    world.owner = "Run/" + run;
  } else if (world.run_id.empty() && owner_ref != nullptr) {
    world.run_id = kube::StringAt(*owner_ref, {"uid"});
  }
  if (const std::string given = kube::AnnotationOf(pod, names::kCoordinatorAnnotation); !given.empty()) {
    world.coordinator = given;
  }
  if (world.num_workers == 1 || !world.reads_input) return {};
  if (world.run_id.empty()) {
    return InvalidArgument("the run has " + std::to_string(world.num_workers) +
                           " workers without an owner in common: give their pods the annotation " +
                           names::kRunAnnotation + " with one value for the run");
  }
  if (world.index_label.empty() && world.index >= world.num_workers) {
    return InvalidArgument("the pod has index " + std::to_string(world.index) + " in a run of " +
                           std::to_string(world.num_workers) + " workers, who count from 0");
  }
  if (!world.first_host.empty() || !world.coordinator.empty()) return {};
  const std::string index =
      world.index_label.empty() ? std::to_string(world.index) : kube::LabelOf(pod, world.index_label);
  const std::string host = kube::StringAt(pod, {"spec", "hostname"});
  if (!host.empty()) {
    world.first_host = FirstHost(host, index);
  } else if (const auto number = WholeNumber(index)) {
    world.host = HostOf(world.run_id, *number);
    world.first_host = HostOf(world.run_id, 0);
  }
  return {};
}

}  // namespace

std::optional<int64_t> WholeNumber(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

Result<int64_t> NumberIn(const json& pod, const char* where, const std::string& key) {
  const std::string text = kube::StringAt(pod, {"metadata", where, key});
  if (const auto number = WholeNumber(text)) return *number;
  const std::string name = std::string("metadata.") + where + "[" + key + "]";
  if (text.empty()) {
    return InvalidArgument(name + ": missing, and the pod's place in its run is not known without it: the pod's " +
                           "controller sets it, or give the annotations " + names::kWorkerIndexAnnotation + " and " +
                           names::kWorkersAnnotation);
  }
  return InvalidArgument(name + ": \"" + text + "\" is not a whole number");
}

Result<std::optional<int64_t>> AnnotatedWorkers(const json& pod) {
  const std::string text = kube::AnnotationOf(pod, names::kWorkersAnnotation);
  if (text.empty()) return std::optional<int64_t>();
  const std::optional<int64_t> workers = WholeNumber(text);
  if (!workers || *workers < 1) {
    return BadAnnotation(names::kWorkersAnnotation, text,
                         "is not a number of workers: write a whole number of at least 1");
  }
  return workers;
}

std::string VariableOf(const json& pod, std::string_view name) {
  const json containers = pod.value("/spec/containers"_json_pointer, json::array());
  for (const json& container : containers) {
    const auto env = container.find("env");
    if (env == container.end() || !env->is_array()) continue;
    for (const json& entry : *env) {
      if (kube::StringAt(entry, {"name"}) == name) return kube::StringAt(entry, {"value"});
    }
  }
  return "";
}

bool IsOf(const json* owner, std::string_view group, std::string_view kind) {
  if (owner == nullptr || kube::StringAt(*owner, {"kind"}) != kind) return false;
  const std::string version = kube::StringAt(*owner, {"apiVersion"});
  const size_t slash = version.find('/');
  return (slash == std::string::npos ? std::string_view() : std::string_view(version).substr(0, slash)) == group;
}

int64_t SpecNumber(const json& owner, std::initializer_list<std::string_view> path, int64_t otherwise) {
  const auto spec = owner.find("spec");
  if (spec == owner.end()) return otherwise;
  const json* at = &*spec;
  for (const std::string_view key : path) {
    if (!at->is_object()) return otherwise;
    const auto found = at->find(key);
    if (found == at->end()) return otherwise;
    at = &*found;
  }
  return at->is_number_integer() ? at->get<int64_t>() : otherwise;
}

Status OwnerNotSeen(const json& owner_ref) {
  return Unavailable("the pod's owner " + kube::StringAt(owner_ref, {"kind"}) + "/" +
                     kube::StringAt(owner_ref, {"name"}) +
                     " has not reached the operator yet: its controller will try again");
}

Result<World> FindWorld(const json& pod, const FindOwner& find_owner) {
  ASSIGN_OR_RETURN(const std::optional<int64_t> workers, AnnotatedWorkers(pod));
  const PodFacts facts{pod, workers, find_owner};
  ASSIGN_OR_RETURN(World world, Find(facts));
  RETURN_IF_ERROR(Complete(facts, world));
  return world;
}

}  // namespace headrace::op
