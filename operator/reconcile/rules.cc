#include "operator/reconcile/rules.h"

#include <ctime>

#include "common/spec/names.h"
#include "operator/kube/object.h"

namespace headrace::op {
namespace {

using nlohmann::json;

constexpr void (*kRules[])(Draft&) = {PlanRule, ServiceRule, RunsRule, PeersRule, ReadyRule, RetireRule};

std::string Rfc3339(std::chrono::system_clock::time_point time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

// The condition as the object has it now; null if it has none.
const json* CurrentCondition(const json& input, const std::string& type) {
  const auto status = input.find("status");
  if (status == input.end() || !status->is_object()) return nullptr;
  const auto conditions = status->find("conditions");
  if (conditions == status->end() || !conditions->is_array()) return nullptr;
  for (const json& condition : *conditions) {
    if (kube::StringAt(condition, {"type"}) == type) return &condition;
  }
  return nullptr;
}

}  // namespace

Decision Decide(const Observed& observed) {
  Draft draft{observed, {}, {}, {}, {}};
  draft.decision.status = json::object();
  for (const auto rule : kRules) rule(draft);
  const bool used = !draft.runs.empty() || !observed.uninjected.empty() || !observed.template_plans.empty();
  draft.decision.can_wait = draft.plan && observed.nothing_made() && !used;
  return std::move(draft.decision);
}

bool SetCondition(Draft& draft, const std::string& type, bool status, const std::string& reason, std::string message) {
  constexpr size_t kMostMessage = 4096;
  const json& input = *draft.observed.input;
  const json* current = CurrentCondition(input, type);
  const std::string status_text = status ? "True" : "False";
  const bool same_status = current != nullptr && kube::StringAt(*current, {"status"}) == status_text;
  std::string since = same_status ? kube::StringAt(*current, {"lastTransitionTime"}) : "";
  if (since.empty()) since = Rfc3339(draft.observed.now);
  draft.decision.status["conditions"].push_back(
      {{"type", type},
       {"status", status_text},
       {"observedGeneration", input.at("metadata").value("generation", int64_t{0})},
       {"lastTransitionTime", since},
       {"reason", reason},
       {"message", Cut(std::move(message), kMostMessage)}});
  return !same_status || kube::StringAt(*current, {"reason"}) != reason;
}

json OwnedMetadata(const Observed& observed, const std::string& name) {
  const std::string api_version = std::string(names::kGroup) + "/" + names::kVersion;
  return {{"name", name},
          {"namespace", observed.name_space},
          {"labels", {{names::kInputLabel, observed.name}, {"app.kubernetes.io/managed-by", "headrace-operator"}}},
          {"ownerReferences", json::array({{{"apiVersion", api_version},
                                            {"kind", names::kKind},
                                            {"name", observed.name},
                                            {"uid", kube::UidOf(*observed.input)},
                                            {"controller", true},
                                            {"blockOwnerDeletion", true}}})}};
}

std::string Cut(std::string text, size_t limit) {
  if (text.size() <= limit) return text;
  size_t end = limit;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  text.resize(end);
  return text;
}

}  // namespace headrace::op
