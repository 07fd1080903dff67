#include "operator/admission/reinjection.h"

#include <algorithm>
#include <iterator>

#include "common/spec/names.h"
#include "operator/kube/object.h"
#include "operator/pod/injected.h"

namespace headrace::op {
namespace {

using nlohmann::json;

constexpr std::string_view kEarlierSidecars[] = {"istio-proxy",  "istio-validation",   "istio-init",
                                                 "linkerd-init", "linkerd-proxy",      "vault-agent-init",
                                                 "vault-agent",  "gke-gcsfuse-sidecar"};
constexpr std::string_view kVolumes[] = {names::kRunVolume, names::kPlanVolume, names::kDataVolume, names::kCacheVolume,
                                         names::kPeersVolume};
constexpr std::string_view kContainers[] = {names::kLoaderContainer, names::kFunctionContainer};
constexpr std::string_view kAnnotations[] = {names::kInjectedAnnotation, names::kRunOwnerAnnotation};

template <size_t N>
bool IsOneOf(const std::string_view (&names)[N], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

std::string NameIn(const json& entry) { return kube::StringAt(entry, {"name"}); }

const json* Named(const json& list, std::string_view name) {
  const auto found = std::find_if(list.begin(), list.end(), [&](const json& entry) { return NameIn(entry) == name; });
  return found == list.end() ? nullptr : &*found;
}

bool MountsRun(const json& container) {
  const json& mounts = kube::ListAt(container, {"volumeMounts"});
  return Named(mounts, names::kRunVolume) != nullptr;
}

// Removes entries of lists, and keeps the operations by which it did. From the last to the first, so that the places
// of the others stay.
class Stripper {
 public:
  explicit Stripper(const json& pod) { out_.pod = pod, out_.patch = json::array(); }

  template <typename Ours>
  void Strip(const std::string& path, Ours ours) {
    const json::json_pointer at(path);
    if (!out_.pod.contains(at) || !out_.pod[at].is_array()) return;
    json& list = out_.pod[at];
    for (size_t i = list.size(); i-- > 0;) {
      if (!ours(list[i])) continue;
      list.erase(i);
      out_.patch.push_back({{"op", "remove"}, {"path", path + "/" + std::to_string(i)}});
    }
  }
  void StripAnnotation(std::string_view name) {
    const std::string path = "/metadata/annotations/" + EscapePointer(name);
    const json::json_pointer at("/metadata/annotations");
    if (!out_.pod.contains(at) || out_.pod[at].erase(std::string(name)) == 0) return;
    out_.patch.push_back({{"op", "remove"}, {"path", path}});
  }
  size_t Count(const std::string& path) const {
    const json::json_pointer at(path);
    return out_.pod.contains(at) ? out_.pod.at(at).size() : 0;
  }
  Stripped Take() && { return std::move(out_); }

 private:
  Stripped out_;
};

}  // namespace

std::string EscapePointer(std::string_view token) {
  std::string escaped;
  for (const char c : token) escaped += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return escaped;
}

bool IsEarlierSidecar(std::string_view container) { return IsOneOf(kEarlierSidecars, container); }

size_t LoaderPosition(const json& init_containers) {
  size_t position = 0;
  for (size_t i = 0; i < init_containers.size(); ++i) {
    if (IsEarlierSidecar(NameIn(init_containers[i]))) position = i + 1;
  }
  return position;
}

bool IsInjected(const json& pod) { return !kube::AnnotationOf(pod, names::kInjectedAnnotation).empty(); }

bool IsWhole(const json& pod) {
  const auto spec = pod.find("spec");
  if (spec == pod.end() || !spec->is_object()) return false;
  const json& init_containers = kube::ListAt(*spec, {"initContainers"});
  const json* loader = Named(init_containers, names::kLoaderContainer);
  if (loader == nullptr || kube::StringAt(*loader, {"restartPolicy"}) != "Always") return false;
  if (static_cast<size_t>(std::distance(&init_containers[0], loader)) < LoaderPosition(init_containers)) return false;
  for (const json& mount : kube::ListAt(*loader, {"volumeMounts"})) {
    const std::string name = NameIn(mount);
    if (IsOneOf(kVolumes, name) && Named(kube::ListAt(*spec, {"volumes"}), name) == nullptr) return false;
  }
  const json& containers = kube::ListAt(*spec, {"containers"});
  return MountsRun(*loader) && std::any_of(containers.begin(), containers.end(), MountsRun);
}

bool IsPlaced(const json& pod) { return LoaderVariable(pod, names::kEnvWorkerIndex) != kPlaceToCome; }

Stripped StripInjection(const json& pod) {
  Stripper stripper(pod);
  stripper.Strip("/spec/initContainers", [](const json& entry) { return IsOneOf(kContainers, NameIn(entry)); });
  stripper.Strip("/spec/volumes", [](const json& entry) { return IsOneOf(kVolumes, NameIn(entry)); });
  for (size_t i = 0; i < stripper.Count("/spec/containers"); ++i) {
    const std::string container = "/spec/containers/" + std::to_string(i);
    stripper.Strip(container + "/volumeMounts", [](const json& mount) { return NameIn(mount) == names::kRunVolume; });
    stripper.Strip(container + "/env", [](const json& variable) { return NameIn(variable) == names::kEnvDir; });
  }
  for (const std::string_view annotation : kAnnotations) stripper.StripAnnotation(annotation);
  return std::move(stripper).Take();
}

}  // namespace headrace::op
