#include "operator/reconcile/observed.h"

#include <nlohmann/json.hpp>

#include "common/spec/names.h"
#include "common/spec/object_names.h"
#include "operator/kube/object.h"
#include "operator/pod/injected.h"

namespace headrace::op {
namespace {

using nlohmann::json;

// The owners of the runs that the status has, as far as they are Jobs and StatefulSets that still exist.
std::map<std::string, kube::Object> OwnersOfRuns(const Caches& caches, const Observed& observed) {
  std::map<std::string, kube::Object> owners;
  for (const json& run : kube::ListAt(*observed.input, {"status", "runs"})) {
    const kube::NamespacedName owner = kube::SplitKey(kube::StringAt(run, {"owner"}));  // "Job/train"
    const kube::Store* store = owner.name_space == "Job"           ? caches.jobs
                               : owner.name_space == "StatefulSet" ? caches.stateful_sets
                                                                   : nullptr;
    kube::Object object = store == nullptr ? nullptr : store->Get(observed.name_space + "/" + owner.name);
    if (object != nullptr && kube::UidOf(*object) == kube::StringAt(run, {"uid"})) {
      owners[kube::UidOf(*object)] = std::move(object);
    }
  }
  return owners;
}

std::set<std::string> PlansOfTemplates(const Caches& caches, const Observed& observed) {
  std::set<std::string> hashes;
  for (const kube::Object& job : caches.jobs->Indexed(observed.name_space + "/" + observed.name)) {
    hashes.insert(kube::StringAt(*job, {"spec", "template", "metadata", "annotations", names::kInjectedAnnotation}));
  }
  return hashes;
}

}  // namespace

std::optional<Observed> Observe(const Caches& caches, const std::string& key,
                                std::chrono::system_clock::time_point now) {
  Observed observed;
  observed.input = caches.inputs->Get(key);
  if (observed.input == nullptr || !kube::StringAt(*observed.input, {"metadata", "deletionTimestamp"}).empty()) {
    return std::nullopt;
  }
  const kube::NamespacedName name = kube::SplitKey(key);
  observed.name_space = name.name_space;
  observed.name = name.name;
  observed.now = now;
  observed.plans = caches.config_maps->Indexed(key);
  for (kube::Object& pod : caches.pods->Indexed(key)) {
    if (!kube::AnnotationOf(*pod, names::kInjectedAnnotation).empty()) {
      observed.pods.push_back(std::move(pod));
    } else if (!HasEnded(*pod) && kube::AnnotationOf(*pod, names::kNotInjectedAnnotation).empty()) {
      observed.uninjected.push_back(kube::NameOf(*pod));
    }
  }
  observed.service = caches.services->Get(observed.name_space + "/" + names::ServiceName(observed.name));
  observed.owners = OwnersOfRuns(caches, observed);
  // Of interest only when a plan may have to go, or the first is not there.
  const bool asks = observed.plans.size() > 1 || observed.nothing_made();
  if (caches.jobs != nullptr && asks) observed.template_plans = PlansOfTemplates(caches, observed);
  return observed;
}

}  // namespace headrace::op
