// Ready: pods that use the input get batches. Degraded: some do not, and will not by themselves.
#include "operator/reconcile/rules.h"

namespace headrace::op {
namespace {

// Of pods that were created while the webhook was not called, or not there yet.
std::string Uninjected(const Observed& observed) {
  const size_t count = observed.uninjected.size();
  const std::string more = count == 1 ? "" : " (and " + std::to_string(count - 1) + " more)";
  return "pod " + observed.uninjected.front() + more + " has the label headrace.dev/input: " + observed.name +
         " but no loader, since it was created while the webhook was not called: delete it, so that it is made anew";
}

}  // namespace

void ReadyRule(Draft& draft) {
  // Runs that have ended speak only while there is no newer one.
  std::vector<const Run*> current;
  for (const Run& run : draft.runs) {
    if (run.active || &run == &draft.runs.front()) current.push_back(&run);
  }
  const Run* failed = nullptr;
  const Run* waiting = nullptr;
  int64_t failed_runs = 0;
  for (const Run* run : current) {
    if (!run->failure.empty()) {
      ++failed_runs;
      if (failed == nullptr) failed = run;
    }
    if (run->ready < run->desired && waiting == nullptr) waiting = run;
  }
  std::string failure;
  if (failed != nullptr) {
    failure = failed->owner + ", " + failed->failure;
    if (failed_runs > 1) failure += " (and " + std::to_string(failed_runs - 1) + " more runs)";
  }

  if (!draft.plan) {
    SetCondition(draft, "Ready", false, "InvalidSpec", draft.invalid);
  } else if (failed != nullptr) {
    SetCondition(draft, "Ready", false, failed->failure_reason, failure);
  } else if (waiting != nullptr) {
    SetCondition(draft, "Ready", false, waiting->active ? "LoadersStarting" : "RunFailed",
                 waiting->owner + ": " + std::to_string(waiting->ready) + " of " + std::to_string(waiting->desired) +
                     " workers ready; " + waiting->waiting);
  } else if (current.empty()) {
    SetCondition(draft, "Ready", true, "NoRuns",
                 "waits for pods with the label headrace.dev/input: " + draft.observed.name);
  } else if (current.front()->completed >= current.front()->desired) {
    SetCondition(draft, "Ready", true, "RunCompleted", current.front()->owner + " has completed");
  } else {
    SetCondition(draft, "Ready", true, "LoadersReady",
                 current.front()->owner + ": " + std::to_string(current.front()->ready) + " of " +
                     std::to_string(current.front()->desired) + " workers ready");
  }
  if (failed != nullptr) {
    SetCondition(draft, "Degraded", true, failed->failure_reason, failure);
  } else if (!draft.observed.uninjected.empty()) {
    const std::string missed = Uninjected(draft.observed);
    if (SetCondition(draft, "Degraded", true, "PodsNotInjected", missed)) {
      draft.decision.events.push_back({kube::EventType::kWarning, "PodsNotInjected", "ObserveRun", missed});
    }
  } else {
    SetCondition(draft, "Degraded", false, "NoErrors", "no loader has reported an error");
  }
}

}  // namespace headrace::op
