// The input's pods, grouped by owner, become runs; status.runs shows the newest of them.
#include <algorithm>
#include <charconv>
#include <map>

#include "common/spec/names.h"
#include "common/spec/object_names.h"
#include "operator/kube/object.h"
#include "operator/pod/injected.h"
#include "operator/reconcile/rules.h"

namespace headrace::op {
namespace {

using nlohmann::json;

constexpr size_t kMostRuns = 16;  // maxItems in the CRD
constexpr size_t kMostRunMessage = 2048;
constexpr size_t kMostElementSpec = 8192;
constexpr std::chrono::seconds kWhileInterrupted{60};

std::string CreatedAt(const json& pod) { return kube::StringAt(pod, {"metadata", "creationTimestamp"}); }
std::string Phase(const json& pod) { return kube::StringAt(pod, {"status", "phase"}); }

const json* LoaderStatus(const json& pod) {
  const auto status = pod.find("status");
  if (status == pod.end() || !status->is_object()) return nullptr;
  const auto entries = status->find("initContainerStatuses");
  if (entries == status->end() || !entries->is_array()) return nullptr;
  for (const json& entry : *entries) {
    if (kube::StringAt(entry, {"name"}) == names::kLoaderContainer) return &entry;
  }
  return nullptr;
}

// A number that the webhook wrote into the loader's environment; `otherwise` where there is none.
int64_t LoaderNumber(const json& pod, const char* variable, int64_t otherwise) {
  const std::string text = LoaderVariable(pod, variable);
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return text.empty() || error != std::errc() || end != text.data() + text.size() ? otherwise : number;
}

// Why the loader ended, if it ended by itself with an error; empty if not.
std::string Failure(const json& pod, const json& loader) {
  for (const char* state : {"state", "lastState"}) {
    const auto terminated = loader.value(state, json::object()).value("terminated", json());
    if (!terminated.is_object() || terminated.value("exitCode", 0) == 0) continue;
    std::string message = kube::StringAt(terminated, {"message"});
    if (!message.empty()) {
      while (!message.empty() && message.back() == '\n') message.pop_back();
      return message;
    }
    // Without a word of its own (killed): over once it runs again, and of no interest once the pod has ended.
    if (loader.value("ready", false) || HasEnded(pod)) continue;
    return "the loader ended with exit code " + std::to_string(terminated.value("exitCode", 0)) + " (" +
           kube::StringAt(terminated, {"reason"}) + "): see kubectl logs " + kube::NameOf(pod) + " -c " +
           names::kLoaderContainer + " --previous";
  }
  return "";
}

// What a loader that is not ready waits for.
std::string Waiting(const json& pod, const json* loader) {
  if (loader != nullptr) {
    const std::string reason = kube::StringAt(*loader, {"state", "waiting", "reason"});
    const std::string message = kube::StringAt(*loader, {"state", "waiting", "message"});
    if (!reason.empty()) return reason + (message.empty() ? "" : ": " + message);
    return "the loader starts";
  }
  for (const json& condition : kube::ListAt(pod, {"status", "conditions"})) {
    if (kube::StringAt(condition, {"type"}) == "PodScheduled" && kube::StringAt(condition, {"status"}) == "False") {
      return kube::StringAt(condition, {"reason"}) + ": " + kube::StringAt(condition, {"message"});
    }
  }
  return "the pod starts";
}

void AddPod(Run& run, const json& pod) {
  const std::string name = kube::NameOf(pod);
  const json* loader = LoaderStatus(pod);
  if (!HasEnded(pod)) run.active = true;
  const std::string failure = loader == nullptr ? "" : Failure(pod, *loader);
  if (!failure.empty() && run.failure.empty()) run.failure = "pod " + name + ": " + failure;
  if (Phase(pod) == "Succeeded") {
    ++run.completed;
    ++run.ready;
  } else if (!HasEnded(pod) && failure.empty() && loader != nullptr && loader->value("ready", false)) {
    ++run.ready;
  } else if (run.waiting.empty()) {
    run.waiting = "pod " + name + ": " + (HasEnded(pod) ? "has failed" : Waiting(pod, loader));
  }
}

// Two webhooks that saw the input change at different moments may have pinned pods to different plans, and loaders of
// different plans read different data.
void CheckOnePlan(Run& run, const std::map<std::string, const json*>& workers) {
  for (const auto& [worker, pod] : workers) {
    const std::string hash = kube::AnnotationOf(*pod, names::kInjectedAnnotation);
    if (hash == run.plan_hash || HasEnded(*pod)) continue;
    run.failure_reason = "PlansDiffer";
    run.failure = "pod " + kube::NameOf(*pod) + ": follows plan " + hash + ", others of its run " + run.plan_hash +
                  ": the input changed while they were created; delete the run's pods, so that all are made anew";
    return;
  }
}

Run MakeRun(const std::vector<const json*>& pods) {
  const json& any = *pods.front();
  Run run;
  run.uid = RunIdOf(any);
  run.owner = RunOwnerOf(any);
  // Of pods that replace one another the latest counts.
  std::map<std::string, const json*> latest;
  const json* newest = pods.front();
  run.started = CreatedAt(any);
  for (const json* pod : pods) {
    const json*& known = latest[WorkerOf(*pod)];
    if (known == nullptr || CreatedAt(*known) < CreatedAt(*pod)) known = pod;
    if (CreatedAt(*newest) < CreatedAt(*pod)) newest = pod;
    run.started = std::min(run.started, CreatedAt(*pod));
  }
  run.plan_hash = kube::AnnotationOf(*newest, names::kInjectedAnnotation);
  run.desired = LoaderNumber(*newest, names::kEnvNumWorkers, static_cast<int64_t>(latest.size()));
  run.replicas_per_worker = LoaderNumber(*newest, names::kEnvReplicasPerWorker, 1);
  run.asks_for_gpus = AsksForGpus(*newest);
  for (const auto& [worker, pod] : latest) AddPod(run, *pod);
  if (run.failure.empty()) CheckOnePlan(run, latest);
  if (run.ready < run.desired && run.waiting.empty()) {
    run.waiting = std::to_string(run.desired - static_cast<int64_t>(latest.size())) + " of " +
                  std::to_string(run.desired) + " pods are yet to be created";
  }
  return run;
}

bool IsTrue(const json& object, std::string_view type) {
  const json& conditions = kube::ListAt(object, {"status", "conditions"});
  return std::any_of(conditions.begin(), conditions.end(), [&](const json& condition) {
    return kube::StringAt(condition, {"type"}) == type && kube::StringAt(condition, {"status"}) == "True";
  });
}

// A run that the status knows and that has no pod now, while its owner is to make them anew: it goes on with its plan.
std::optional<Run> Interrupted(const json& known, const Observed& observed) {
  const auto owner = observed.owners.find(kube::StringAt(known, {"uid"}));
  if (owner == observed.owners.end() || !kube::StringAt(*owner->second, {"metadata", "deletionTimestamp"}).empty() ||
      IsTrue(*owner->second, "Complete") || IsTrue(*owner->second, "Failed") ||
      owner->second->value("/spec/replicas"_json_pointer, int64_t{1}) == 0) {
    return std::nullopt;
  }
  Run run;
  run.uid = kube::StringAt(known, {"uid"});
  run.owner = kube::StringAt(known, {"owner"});
  run.plan_hash = kube::StringAt(known, {"plan"});
  run.started = kube::StringAt(known, {"startTime"});
  run.desired = known.value("workersDesired", int64_t{0});
  run.replicas_per_worker = known.value("replicasPerWorker", int64_t{1});
  run.asks_for_gpus = kube::StringAt(known, {"memory"}) == MemoryKindName(MemoryKind::kPinned);
  run.active = true;
  run.waiting = "its pods are gone, and " + run.owner + " is to make them anew";
  return run;
}

// The plan that the run's pods are pinned to; none if its ConfigMap is not in the cache.
std::optional<Plan> PlanOf(const Run& run, const Draft& draft) {
  if (draft.plan && draft.plan->hash == run.plan_hash) return draft.plan;
  const std::string name = names::PlanConfigMapName(draft.observed.name, run.plan_hash);
  for (const kube::Object& map : draft.observed.plans) {
    if (kube::NameOf(*map) != name) continue;
    Result<Plan> plan =
        ParsePlan(json::parse(kube::StringAt(*map, {"data", names::kPlanFile}), nullptr, /*allow_exceptions=*/false));
    if (plan.ok()) return std::move(plan).value();
  }
  return std::nullopt;
}

std::string MessageOf(const Run& run) {
  if (!run.failure.empty()) return Cut(run.failure, kMostRunMessage);
  if (run.completed > 0 && run.completed >= run.desired) return "completed";
  if (run.ready >= run.desired) return "all loaders are ready";
  const std::string others = run.ready == 0 ? ""
                                            : std::to_string(run.ready) + " of " + std::to_string(run.desired) +
                                                  " workers are ready and wait for others; ";
  return Cut(others + run.waiting, kMostRunMessage);
}

// Where batches go by what the pods ask for. What each process then finds is in its log and in the client's info.
std::pair<MemoryKind, std::string> MemoryOf(const Run& run, const Delivery& delivery) {
  const std::string name(MemoryKindName(delivery.memory));
  if (delivery.memory == MemoryKind::kDevice || !delivery.resource_claim.empty()) {
    return {MemoryKind::kDevice, name + ", and the loader has the trainers' resource claim" +
                                     (delivery.resource_claim.empty() ? "" : " \"" + delivery.resource_claim + "\"") +
                                     ": it fills GPU memory that they share"};
  }
  if (delivery.memory != MemoryKind::kAuto) return {delivery.memory, "spec.delivery.memory says so"};
  const std::string no_claim = "Auto, and no spec.delivery.resourceClaim gives the loader a GPU: ";
  if (run.asks_for_gpus) {
    return {MemoryKind::kPinned, no_claim + "the trainers have GPUs, to which their clients bring the batches"};
  }
  return {MemoryKind::kHost, no_claim + "the pods ask for none, so trainers get host memory"};
}

json RunStatus(const Run& run, const Draft& draft) {
  json status = {{"uid", run.uid},
                 {"owner", run.owner},
                 {"plan", run.plan_hash},
                 {"workersReady", run.ready},
                 {"workersDesired", run.desired},
                 {"replicasPerWorker", run.replicas_per_worker},
                 {"message", MessageOf(run)}};
  if (!run.started.empty()) status["startTime"] = run.started;
  if (const std::optional<Plan> plan = PlanOf(run, draft)) {
    const Topology topology{std::max<int64_t>(run.desired, 1), 0, std::max<int64_t>(run.replicas_per_worker, 1)};
    status["effectivePolicy"] = PolicyName(plan->effective_policy);
    status["policyReason"] = Cut(PolicyReason(*plan), kMostRunMessage);
    const auto [memory, memory_reason] = MemoryOf(run, plan->spec.delivery);
    status["memory"] = MemoryKindName(memory);
    status["memoryReason"] = memory_reason;
    // A function's types are known when it runs, to the loaders alone.
    const std::vector<TensorSpec> element_spec = ElementSpec(*plan, topology);
    if (!element_spec.empty()) status["elementSpec"] = Cut(ToString(element_spec), kMostElementSpec);
    status["cardinality"] = Cardinality(plan->spec);
  }
  return status;
}

// Events are about change: what the object's status said before is what users have been told.
void AddEvents(Draft& draft, const Run& run, const json* before) {
  const auto tell = [&](kube::EventType type, const char* reason, std::string note) {
    draft.decision.events.push_back({type, reason, "ObserveRun", run.owner + ": " + std::move(note)});
  };
  const std::string workers = std::to_string(run.desired) + (run.desired == 1 ? " worker" : " workers");
  if (before == nullptr) tell(kube::EventType::kNormal, "RunStarted", workers + " on plan " + run.plan_hash);
  const int64_t ready_before = before == nullptr ? 0 : before->value("workersReady", int64_t{0});
  const std::string message = MessageOf(run);
  const std::string message_before = before == nullptr ? "" : kube::StringAt(*before, {"message"});
  if (!run.failure.empty()) {
    if (message != message_before) tell(kube::EventType::kWarning, run.failure_reason.c_str(), message);
  } else if (message == "completed") {
    if (message != message_before) tell(kube::EventType::kNormal, "RunCompleted", workers);
  } else if (run.desired > 0 && run.ready >= run.desired && ready_before < run.desired) {
    tell(kube::EventType::kNormal, "RunReady",
         workers + " with " + std::to_string(run.replicas_per_worker) + " replica(s) each get batches");
  }
}

}  // namespace

void RunsRule(Draft& draft) {
  const json& input = *draft.observed.input;
  std::map<std::string, std::vector<const json*>> by_run;
  for (const kube::Object& pod : draft.observed.pods) by_run[RunIdOf(*pod)].push_back(pod.get());
  for (const auto& [id, pods] : by_run) draft.runs.push_back(MakeRun(pods));
  const json& before = kube::ListAt(input, {"status", "runs"});
  for (const json& known : before) {
    if (by_run.contains(kube::StringAt(known, {"uid"}))) continue;
    std::optional<Run> run = Interrupted(known, draft.observed);
    if (!run) continue;
    draft.runs.push_back(*std::move(run));
    // Its owner's end makes no event of ours.
    draft.decision.look_again =
        std::min<std::chrono::milliseconds>(draft.decision.look_again.value_or(kWhileInterrupted), kWhileInterrupted);
  }
  std::sort(draft.runs.begin(), draft.runs.end(),
            [](const Run& a, const Run& b) { return a.started != b.started ? a.started > b.started : a.uid < b.uid; });
  if (draft.runs.empty()) return;

  json& status = draft.decision.status;
  for (size_t i = 0; i < std::min(draft.runs.size(), kMostRuns); ++i) {
    const Run& run = draft.runs[i];
    const auto known = std::find_if(before.begin(), before.end(),
                                    [&](const json& entry) { return kube::StringAt(entry, {"uid"}) == run.uid; });
    AddEvents(draft, run, known == before.end() ? nullptr : &*known);
    status["runs"].push_back(RunStatus(run, draft));
  }
  status["summary"]["workers"] =
      std::to_string(draft.runs.front().ready) + "/" + std::to_string(draft.runs.front().desired);
}

}  // namespace headrace::op
