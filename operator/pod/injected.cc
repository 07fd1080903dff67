#include "operator/pod/injected.h"

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "common/spec/names.h"
#include "operator/kube/object.h"

namespace headrace::op {
namespace {

using nlohmann::json;
using namespace nlohmann::literals;  // NOLINT: the literal "..."_json_pointer

// What is read of a loader's environment.
constexpr std::string_view kVariables[] = {names::kEnvWorkerIndex, names::kEnvNumWorkers, names::kEnvReplicasPerWorker,
                                           names::kEnvRunId};

json* Find(json& object, std::string_view key) {
  if (!object.is_object()) return nullptr;
  const auto it = object.find(key);
  return it == object.end() ? nullptr : &*it;
}

// Erases the members of `object` that are not in `keep`.
void Keep(json* object, std::initializer_list<std::string_view> keep) {
  if (object == nullptr || !object->is_object()) return;
  for (auto it = object->begin(); it != object->end();) {
    const bool kept = std::find(keep.begin(), keep.end(), it.key()) != keep.end();
    it = kept ? std::next(it) : object->erase(it);
  }
}

const json* LoaderOf(const json& pod) {
  const auto spec = pod.find("spec");
  if (spec == pod.end() || !spec->is_object()) return nullptr;
  const auto containers = spec->find("initContainers");
  if (containers == spec->end() || !containers->is_array()) return nullptr;
  const auto found = std::find_if(containers->begin(), containers->end(), [](const json& container) {
    return kube::StringAt(container, {"name"}) == names::kLoaderContainer;
  });
  return found == containers->end() ? nullptr : &*found;
}

// "metadata.labels['a']", "metadata.uid": what the webhook refers to.
std::string FieldOf(const json& pod, const std::string& path) {
  constexpr std::string_view kLabels = "metadata.labels['";
  if (path.starts_with(kLabels) && path.ends_with("']")) {
    return kube::LabelOf(pod, std::string_view(path).substr(kLabels.size(), path.size() - kLabels.size() - 2));
  }
  return path == "metadata.uid" ? kube::UidOf(pod) : "";
}

}  // namespace

bool HasEnded(const json& pod) {
  const std::string phase = kube::StringAt(pod, {"status", "phase"});
  return phase == "Succeeded" || phase == "Failed";
}

std::string LoaderVariable(const json& pod, std::string_view name) {
  const json* loader = LoaderOf(pod);
  if (loader == nullptr || !loader->is_object()) return "";
  const auto env = loader->find("env");
  if (env == loader->end() || !env->is_array()) return "";
  for (const json& entry : *env) {
    if (kube::StringAt(entry, {"name"}) != name) continue;
    if (entry.contains("valueFrom")) {
      return FieldOf(pod, kube::StringAt(entry, {"valueFrom", "fieldRef", "fieldPath"}));
    }
    return kube::StringAt(entry, {"value"});
  }
  return "";
}

std::string RunIdOf(const json& pod) {
  if (std::string run = LoaderVariable(pod, names::kEnvRunId); !run.empty()) return run;
  const json* owner = kube::ControllerOf(pod);
  return owner != nullptr ? kube::StringAt(*owner, {"uid"}) : kube::UidOf(pod);
}

std::string RunOwnerOf(const json& pod) {
  if (std::string annotated = kube::AnnotationOf(pod, names::kRunOwnerAnnotation); !annotated.empty()) return annotated;
  const json* owner = kube::ControllerOf(pod);
  if (owner == nullptr) return "Pod/" + kube::NameOf(pod);
  return kube::StringAt(*owner, {"kind"}) + "/" + kube::StringAt(*owner, {"name"});
}

std::string WorkerOf(const json& pod) {
  const std::string index = LoaderVariable(pod, names::kEnvWorkerIndex);
  return index.empty() ? "pod/" + kube::NameOf(pod) : index;
}

bool IsDevicePluginGpu(std::string_view resource) {
  return resource.starts_with("nvidia.com/gpu") || resource.starts_with("nvidia.com/mig-");
}

bool AsksForGpus(const json& pod) {
  const json& containers = kube::ListAt(pod, {"spec", "containers"});
  return std::any_of(containers.begin(), containers.end(), [](const json& container) {
    if (!kube::ListAt(container, {"resources", "claims"}).empty()) return true;
    const json limits = container.is_object() ? container.value("/resources/limits"_json_pointer, json()) : json();
    return limits.is_object() && std::any_of(limits.items().begin(), limits.items().end(),
                                             [](const auto& limit) { return IsDevicePluginGpu(limit.key()); });
  });
}

void SlimPod(json& pod) {
  // What refers to the labels is resolved before they go.
  json env = json::array();
  for (const std::string_view name : kVariables) {
    if (std::string value = LoaderVariable(pod, name); !value.empty())
      env.push_back({{"name", name}, {"value", value}});
  }
  const bool injected = LoaderOf(pod) != nullptr;
  const bool asks_for_gpus = AsksForGpus(pod);

  Keep(&pod, {"apiVersion", "kind", "metadata", "spec", "status"});
  if (json* meta = Find(pod, "metadata")) {
    Keep(meta, {"name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "labels",
                "annotations", "ownerReferences"});
    Keep(Find(*meta, "labels"), {names::kInputLabel, kRevisionLabel});
    Keep(Find(*meta, "annotations"),
         {names::kInjectedAnnotation, names::kRunOwnerAnnotation, names::kNotInjectedAnnotation});
    if (json* owners = Find(*meta, "ownerReferences"); owners != nullptr && owners->is_array()) {
      std::erase_if(owners->get_ref<json::array_t&>(), [](const json& owner) {
        const auto controller = owner.is_object() ? owner.find("controller") : owner.end();
        return controller == owner.end() || *controller != true;
      });
      for (json& owner : *owners) Keep(&owner, {"kind", "name", "uid", "controller"});
    }
  }
  if (json* spec = Find(pod, "spec")) {
    *spec = json::object();
    if (injected)
      (*spec)["initContainers"] = json::array({{{"name", names::kLoaderContainer}, {"env", std::move(env)}}});
    if (asks_for_gpus) (*spec)["containers"] = json::parse(R"([{"resources": {"limits": {"nvidia.com/gpu": 1}}}])");
  }
  json* status = Find(pod, "status");
  if (status == nullptr) return;
  Keep(status, {"phase", "conditions", "initContainerStatuses"});
  if (json* conditions = Find(*status, "conditions"); conditions != nullptr && conditions->is_array()) {
    std::erase_if(conditions->get_ref<json::array_t&>(), [](const json& condition) {  // why it waits for a node
      return kube::StringAt(condition, {"type"}) != "PodScheduled" || kube::StringAt(condition, {"status"}) != "False";
    });
    for (json& condition : *conditions) Keep(&condition, {"type", "status", "reason", "message"});
    if (conditions->empty()) status->erase("conditions");
  }
  json* containers = Find(*status, "initContainerStatuses");
  if (containers == nullptr || !containers->is_array()) return;
  std::erase_if(containers->get_ref<json::array_t&>(),
                [](const json& entry) { return kube::StringAt(entry, {"name"}) != names::kLoaderContainer; });
  for (json& container : *containers) {
    Keep(&container, {"name", "ready", "state", "lastState"});
    for (const char* state : {"state", "lastState"}) {
      json* is = Find(container, state);
      if (is == nullptr) continue;
      Keep(Find(*is, "running"), {});
      Keep(Find(*is, "terminated"), {"exitCode", "reason", "message"});
      if (is->empty()) container.erase(state);
    }
  }
}

}  // namespace headrace::op
