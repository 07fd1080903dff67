#include "operator/admission/run_plans.h"

#include <nlohmann/json.hpp>

#include "common/spec/names.h"
#include "common/spec/object_names.h"
#include "operator/kube/object.h"
#include "operator/pod/injected.h"

namespace headrace::op {
namespace {

using nlohmann::json;

constexpr size_t kMostRemembered = 16384;

std::string KeyOf(const RunPlans::Run& run, const json& pod) {
  return run.name_space + "/" + run.input + "/" + run.id + "/" + kube::LabelOf(pod, kRevisionLabel);
}

}  // namespace

std::optional<Plan> RunPlans::Find(const Run& run, const json& pod, const json& input,
                                   const std::string& current_hash) const {
  const std::string hash = HashOf(run, pod, input, current_hash);
  if (hash.empty() || hash == current_hash || config_maps_ == nullptr) return {};
  const kube::Object map = config_maps_->Get(run.name_space + "/" + names::PlanConfigMapName(run.input, hash));
  if (map == nullptr) return {};
  Result<Plan> plan =
      ParsePlan(json::parse(kube::StringAt(*map, {"data", names::kPlanFile}), nullptr, /*allow_exceptions=*/false));
  if (!plan.ok()) return {};
  return std::move(plan).value();
}

std::string RunPlans::HashOf(const Run& run, const json& pod, const json& input,
                             const std::string& current_hash) const {
  if (std::string own = kube::AnnotationOf(pod, names::kInjectedAnnotation); !own.empty()) return own;
  if (run.id.empty()) return "";
  if (std::string given = Remembered(KeyOf(run, pod)); !given.empty()) return given;
  const std::string revision = kube::LabelOf(pod, kRevisionLabel);
  if (revision.empty()) {  // the status does not tell one rollout from another
    const json runs = input.value("/status/runs"_json_pointer, json::array());
    for (const json& known : runs) {
      if (kube::StringAt(known, {"uid"}) == run.id) return kube::StringAt(known, {"plan"});
    }
  }
  // Pods are looked through only if an older plan still exists.
  if (pods_ == nullptr || config_maps_ == nullptr) return "";
  const std::string current = names::PlanConfigMapName(run.input, current_hash);
  bool older = false;
  const std::string input_key = run.name_space + "/" + run.input;
  for (const kube::Object& map : config_maps_->Indexed(input_key)) older = older || kube::NameOf(*map) != current;
  if (!older) return "";
  for (const kube::Object& sibling : pods_->Indexed(input_key)) {
    const std::string hash = kube::AnnotationOf(*sibling, names::kInjectedAnnotation);
    if (hash.empty() || hash == current_hash || RunIdOf(*sibling) != run.id ||
        kube::LabelOf(*sibling, kRevisionLabel) != revision) {
      continue;
    }
    if (config_maps_->Get(run.name_space + "/" + names::PlanConfigMapName(run.input, hash)) != nullptr) return hash;
  }
  return "";
}

void RunPlans::Remember(const Run& run, const json& pod, const std::string& hash) {
  if (run.id.empty()) return;
  const std::lock_guard lock(mutex_);
  const auto [at, added] = hashes_.insert_or_assign(KeyOf(run, pod), hash);
  if (!added) return;
  oldest_.push_back(at->first);
  if (oldest_.size() <= kMostRemembered) return;
  hashes_.erase(oldest_.front());
  oldest_.pop_front();
}

std::string RunPlans::Remembered(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = hashes_.find(key);
  return found == hashes_.end() ? "" : found->second;
}

}  // namespace headrace::op
