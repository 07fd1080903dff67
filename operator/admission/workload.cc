#include "operator/admission/workload.h"

#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/spec/names.h"
#include "operator/kube/object.h"

namespace headrace::op {
namespace {

using nlohmann::json;

struct Workload {
  std::string_view group;
  std::string_view kind;
  std::string_view index_label;   // on each pod: its index from 0
  std::string_view run_id_label;  // on each pod: the owner's UID; empty where the workload has no such label
  std::string_view size;          // in the owner's spec: the number of pods that make a run, 1 if absent
  std::string_view remedy;        // for pods without the index label
};

// Each names its pods OWNER-INDEX, and sets that as their host name.
constexpr Workload kWorkloads[] = {
    {"batch", "Job", "batch.kubernetes.io/job-completion-index", "batch.kubernetes.io/controller-uid", "completions",
     "set spec.completionMode: Indexed and spec.completions on the Job"},
    {"apps", "StatefulSet", "apps.kubernetes.io/pod-index", "", "replicas",
     "Kubernetes 1.31 or later sets that label on the pods of a StatefulSet"},
};

std::string_view GroupOf(std::string_view api_version) {
  const size_t slash = api_version.find('/');
  return slash == std::string_view::npos ? std::string_view() : api_version.substr(0, slash);
}

const Workload* FindWorkload(std::string_view api_version, std::string_view kind) {
  for (const Workload& workload : kWorkloads) {
    if (workload.kind == kind && workload.group == GroupOf(api_version)) return &workload;
  }
  return nullptr;
}

Result<std::optional<int64_t>> AnnotatedWorkers(const json& pod) {
  const std::string text = kube::AnnotationOf(pod, names::kWorkersAnnotation);
  if (text.empty()) return std::optional<int64_t>();
  int64_t workers = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), workers);
  if (error != std::errc() || end != text.data() + text.size() || workers < 1) {
    return InvalidArgument(std::string("metadata.annotations[") + names::kWorkersAnnotation + "]: \"" + text +
                           "\" is not a number of workers: write a whole number of at least 1");
  }
  return std::optional<int64_t>(workers);
}

// Worker 0's host, told from the host name of worker `index`: controllers end the names of their pods with the index.
std::string FirstHost(const std::string& host, const std::string& index) {
  const std::string end = "-" + index;
  if (index.empty() || host.size() <= end.size() || !host.ends_with(end)) return "";
  return host.substr(0, host.size() - index.size()) + "0";
}

int64_t SizeOf(const json& owner, const Workload& workload) {
  const auto spec = owner.find("spec");
  if (spec == owner.end() || !spec->is_object()) return 1;
  const auto size = spec->find(workload.size);
  return size != spec->end() && size->is_number_integer() ? size->get<int64_t>() : 1;
}

}  // namespace

Result<World> FindWorld(const json& pod, const FindOwner& find_owner) {
  ASSIGN_OR_RETURN(const std::optional<int64_t> annotated, AnnotatedWorkers(pod));
  World world;
  world.coordinator = kube::AnnotationOf(pod, names::kCoordinatorAnnotation);
  const json* owner_ref = kube::ControllerOf(pod);
  if (owner_ref != nullptr) world.run_id = kube::StringAt(*owner_ref, {"uid"});

  const std::string kind = owner_ref == nullptr ? "" : kube::StringAt(*owner_ref, {"kind"});
  const Workload* workload =
      owner_ref == nullptr ? nullptr : FindWorkload(kube::StringAt(*owner_ref, {"apiVersion"}), kind);
  if (workload == nullptr) {
    // An owner we do not know: it may still set an index label that we do.
    for (const Workload& candidate : kWorkloads) {
      if (!kube::LabelOf(pod, candidate.index_label).empty()) world.index_label = candidate.index_label;
    }
    world.num_workers = annotated.value_or(1);
    world.first_host = FirstHost(kube::StringAt(pod, {"spec", "hostname"}), kube::LabelOf(pod, world.index_label));
    if (world.index_label.empty() && world.num_workers > 1) {
      return InvalidArgument(std::string("metadata.annotations[") + names::kWorkersAnnotation +
                             "]: " + std::to_string(world.num_workers) +
                             " workers, but the pod has no index among them: use an " + "Indexed Job or a StatefulSet");
    }
    return world;
  }

  world.index_label = workload->index_label;
  const std::string name = kube::StringAt(*owner_ref, {"name"});
  world.first_host = name + "-0";
  if (annotated) {
    world.num_workers = *annotated;
  } else {
    const auto owner = find_owner(kind, name);
    if (owner == nullptr) {
      return Unavailable("the pod's owner " + kind + "/" + name +
                         " has not reached the operator yet: its controller will try again");
    }
    world.num_workers = SizeOf(*owner, *workload);
  }
  if (kube::LabelOf(pod, workload->index_label).empty()) {
    if (world.num_workers > 1) {
      return InvalidArgument(kind + "/" + name + " has " + std::to_string(world.num_workers) +
                             " workers, but its pods lack the label " + std::string(workload->index_label) +
                             ", so none knows its part of the data: " + std::string(workload->remedy));
    }
    world.index_label.clear();
  }
  return world;
}

Result<World> WorldOfTemplate(const json& owner, const json& pod_template) {
  ASSIGN_OR_RETURN(const std::optional<int64_t> annotated, AnnotatedWorkers(pod_template));
  const std::string kind = kube::StringAt(owner, {"kind"});
  const Workload* workload = FindWorkload(kube::StringAt(owner, {"apiVersion"}), kind);
  World world;
  world.run_id = kind + "/" + kube::NameOf(owner);
  world.coordinator = kube::AnnotationOf(pod_template, names::kCoordinatorAnnotation);
  if (!kube::NameOf(owner).empty()) world.first_host = kube::NameOf(owner) + "-0";
  if (workload == nullptr) {
    world.num_workers = annotated.value_or(1);
    if (world.num_workers > 1) {
      return InvalidArgument("a " + kind + " gives its pods no index: use an Indexed Job or a StatefulSet for " +
                             std::to_string(world.num_workers) + " workers");
    }
    return world;
  }
  world.num_workers = annotated.value_or(SizeOf(owner, *workload));
  world.subdomain = kube::StringAt(owner, {"spec", "serviceName"});
  world.run_id_label = workload->run_id_label;
  const bool indexed = kind != "Job" || kube::StringAt(owner, {"spec", "completionMode"}) == "Indexed";
  if (indexed) {
    world.index_label = workload->index_label;
  } else if (world.num_workers > 1) {
    return InvalidArgument("Job/" + kube::NameOf(owner) + " has " + std::to_string(world.num_workers) +
                           " workers without an index: " + std::string(workload->remedy));
  }
  return world;
}

}  // namespace headrace::op
