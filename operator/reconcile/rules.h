// The rules of reconciliation, in the order in which they act. Each is pure: it reads what was observed and what
// earlier rules found, and adds to the decision.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "operator/reconcile/decision.h"

namespace headrace::op {

Decision Decide(const Observed& observed);

void PlanRule(Draft& draft);     // rule_plan.cc: spec -> plan; Accepted; the plan's ConfigMap
void ServiceRule(Draft& draft);  // rule_service.cc: the headless Service of the workers
void RunsRule(Draft& draft);     // rule_runs.cc: pods -> runs; status.runs
void PeersRule(Draft& draft);    // rule_peers.cc: the keys of the loaders
void ReadyRule(Draft& draft);    // rule_ready.cc: Ready and Degraded
void RetireRule(Draft& draft);   // rule_retire.cc: plans that nobody uses any more

// Sets the condition in the draft's status. lastTransitionTime stays where `status` stays. True if status or reason
// differ from what the object says now.
bool SetCondition(Draft& draft, const std::string& type, bool status, const std::string& reason, std::string message);

// Labels of every object that the operator makes for the input, and its ownerReferences.
nlohmann::json OwnedMetadata(const Observed& observed, const std::string& name);

// The text cut to `limit` bytes, at the end of a UTF-8 character.
std::string Cut(std::string text, size_t limit);

}  // namespace headrace::op
