// The spec becomes a plan, or Accepted=False says why not.
#include <algorithm>

#include "common/spec/names.h"
#include "common/spec/object_names.h"
#include "operator/kube/object.h"
#include "operator/reconcile/rules.h"

namespace headrace::op {
namespace {

using nlohmann::json;

std::string SourceSummary(const InputSpec& spec) {
  if (const auto* files = std::get_if<FilesSource>(&spec.source)) return std::string(FormatName(files->format));
  return std::string(SourceName(spec.source));
}

json Summary(const Plan& plan) {
  json summary = {{"source", SourceSummary(plan.spec)}, {"policy", PolicyName(plan.effective_policy)}};
  for (const Transformation& step : plan.spec.pipeline) {
    if (const Batch* batch = std::get_if<Batch>(&step)) summary["batch"] = batch->size;  // the last one is distributed
  }
  return summary;
}

bool IsOwnedBy(const json& object, const std::string& uid) {
  const json* owner = kube::ControllerOf(object);
  return owner != nullptr && kube::StringAt(*owner, {"uid"}) == uid;
}

// Whether it has to be made.
bool WantConfigMap(Draft& draft, const std::string& name) {
  using namespace std::chrono_literals;
  const Observed& observed = draft.observed;
  const auto existing = std::find_if(observed.plans.begin(), observed.plans.end(),
                                     [&](const kube::Object& map) { return kube::NameOf(*map) == name; });
  if (existing != observed.plans.end()) {
    // Immutable and named by its content: as wanted.
    if (IsOwnedBy(**existing, kube::UidOf(*observed.input))) return false;
    // Left by an earlier input of this name: the garbage collector would take it from under our pods.
    draft.decision.remove.push_back(*existing);
    draft.decision.look_again = 1000ms;
    return false;
  }
  json map = {{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"metadata", OwnedMetadata(observed, name)}};
  map["immutable"] = true;
  map["data"][names::kPlanFile] = ToJson(*draft.plan).dump(2) + "\n";
  draft.decision.apply.push_back(std::move(map));
  return true;
}

}  // namespace

void PlanRule(Draft& draft) {
  const json& input = *draft.observed.input;
  json& status = draft.decision.status;
  Result<InputSpec> spec = ParseInputSpec(kube::ObjectAt(input, {"spec"}));
  if (spec.ok()) {
    const Status for_pods = CheckForPods(*spec);
    if (!for_pods.ok()) spec = for_pods;
  }
  if (!spec.ok()) {
    draft.invalid = spec.status().message();
    if (SetCondition(draft, "Accepted", false, "InvalidSpec", draft.invalid)) {
      draft.decision.events.push_back({kube::EventType::kWarning, "InvalidSpec", "Compile", draft.invalid});
    }
    return;
  }
  draft.plan = CompilePlan(std::move(spec).value(), draft.observed.name_space + "/" + draft.observed.name);
  const std::string map_name = names::PlanConfigMapName(draft.observed.name, draft.plan->hash);
  std::string message = "plan " + draft.plan->hash;
  for (const std::string& warning : draft.plan->warnings) message += "; warning: " + warning;
  const bool makes_first = WantConfigMap(draft, map_name) && draft.observed.nothing_made();
  // If the making was put off, the condition has been there since.
  if (SetCondition(draft, "Accepted", true, "Accepted", message) || makes_first) {
    draft.decision.events.push_back({kube::EventType::kNormal, "Accepted", "Compile", message});
  }
  const std::string before = kube::StringAt(input, {"status", "plan", "hash"});
  if (!before.empty() && before != draft.plan->hash) {  // of the first one, Accepted tells
    draft.decision.events.push_back(
        {kube::EventType::kNormal, "PlanCreated", "Compile", "new runs use plan " + draft.plan->hash});
  }
  status["plan"] = {{"hash", draft.plan->hash}, {"configMap", map_name}};
  status["summary"] = Summary(*draft.plan);
}

}  // namespace headrace::op
