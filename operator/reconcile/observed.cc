#include "operator/reconcile/observed.h"

#include <nlohmann/json.hpp>

#include "common/spec/names.h"
#include "common/spec/object_names.h"
#include "operator/kube/object.h"

namespace headrace::op {

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
  const auto mine = [&](const kube::Object& object) {
    return kube::LabelOf(*object, names::kInputLabel) == observed.name;
  };
  for (kube::Object& map : caches.config_maps->List(observed.name_space)) {
    if (mine(map)) observed.plans.push_back(std::move(map));
  }
  for (kube::Object& pod : caches.pods->List(observed.name_space)) {
    if (mine(pod) && !kube::AnnotationOf(*pod, names::kInjectedAnnotation).empty()) {
      observed.pods.push_back(std::move(pod));
    }
  }
  observed.service = caches.services->Get(observed.name_space + "/" + names::ServiceName(observed.name));
  return observed;
}

}  // namespace headrace::op
