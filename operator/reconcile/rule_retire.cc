// Plans that are not current, and to which no pod, run or template is pinned, are deleted.
#include <algorithm>
#include <ctime>
#include <set>

#include "common/spec/names.h"
#include "common/spec/object_names.h"
#include "operator/kube/object.h"
#include "operator/reconcile/rules.h"

namespace headrace::op {
namespace {

// A webhook whose cache is behind may still pin a pod to the plan that was current a moment ago.
constexpr std::chrono::seconds kGrace{30};

std::chrono::system_clock::time_point CreatedAt(const nlohmann::json& object) {
  std::tm utc{};
  const std::string text = kube::StringAt(object, {"metadata", "creationTimestamp"});
  if (strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &utc) == nullptr) return {};
  return std::chrono::system_clock::from_time_t(timegm(&utc));
}

}  // namespace

void RetireRule(Draft& draft) {
  // While the spec is invalid the plan that it replaced stays: a correction may bring it back.
  if (!draft.plan) return;
  const Observed& observed = draft.observed;
  std::set<std::string> used = {names::PlanConfigMapName(observed.name, draft.plan->hash)};
  for (const kube::Object& pod : observed.pods) {
    used.insert(names::PlanConfigMapName(observed.name, kube::AnnotationOf(*pod, names::kInjectedAnnotation)));
  }
  for (const Run& run : draft.runs) used.insert(names::PlanConfigMapName(observed.name, run.plan_hash));
  for (const std::string& hash : observed.template_plans) used.insert(names::PlanConfigMapName(observed.name, hash));
  std::vector<kube::Object> unused;
  std::chrono::system_clock::time_point newest{};
  bool current_exists = false;
  for (const kube::Object& map : observed.plans) {
    // The label alone is the user's to set: only what the operator made is the operator's to delete.
    const nlohmann::json* owner = kube::ControllerOf(*map);
    if (owner == nullptr || kube::StringAt(*owner, {"uid"}) != kube::UidOf(*observed.input)) continue;
    newest = std::max(newest, CreatedAt(*map));
    current_exists |=
        kube::StringAt(*map, {"metadata", "name"}) == names::PlanConfigMapName(observed.name, draft.plan->hash);
    if (used.count(kube::NameOf(*map)) == 0) unused.push_back(map);
  }
  if (unused.empty() || !current_exists) return;  // the event of the new ConfigMap brings the key back
  const auto age = observed.now - newest;
  if (age < kGrace) {
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(kGrace - age);
    draft.decision.look_again = std::min(draft.decision.look_again.value_or(wait), wait);
    return;
  }
  draft.decision.remove.insert(draft.decision.remove.end(), unused.begin(), unused.end());
}

}  // namespace headrace::op
