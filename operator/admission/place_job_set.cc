// JobSet: several Jobs made alike. The pods of one replicated job are a run, numbered through its Jobs; a restart of
// the set is a new run. A TrainJob is a JobSet, of which the Jobs of the trainer's step alone read the input.
#include <nlohmann/json.hpp>

#include "operator/admission/places.h"
#include "operator/kube/object.h"

namespace headrace::op {
namespace {

using nlohmann::json;

constexpr char kSet[] = "jobset.sigs.k8s.io/jobset-name";
constexpr char kSetUid[] = "jobset.sigs.k8s.io/jobset-uid";
constexpr char kReplicatedJob[] = "jobset.sigs.k8s.io/replicatedjob-name";
constexpr char kReplicas[] = "jobset.sigs.k8s.io/replicatedjob-replicas";
constexpr char kJobIndex[] = "jobset.sigs.k8s.io/job-index";
constexpr char kRestart[] = "jobset.sigs.k8s.io/restart-attempt";
// On the Jobs of a TrainJob, by its runtime: "trainer", or another step.
constexpr char kTrainJobStep[] = "trainer.kubeflow.org/trainjob-ancestor-step";

std::string EitherLabel(const json& pod, const json& job, const char* label) {
  std::string value = kube::LabelOf(pod, label);
  return value.empty() ? kube::LabelOf(job, label) : value;
}

}  // namespace

Place JobSetPlace(const PodFacts& facts) {
  const json& pod = facts.pod;
  const json* owner_ref = kube::ControllerOf(pod);
  const std::string set = kube::LabelOf(pod, kSet), replicated = kube::LabelOf(pod, kReplicatedJob);
  if (set.empty() || replicated.empty() || !IsOf(owner_ref, "batch", "Job")) return std::optional<World>();
  const auto job = facts.find_owner("Job", kube::StringAt(*owner_ref, {"name"}));
  if (job == nullptr) return OwnerNotSeen(*owner_ref);

  World world;
  const std::string step = EitherLabel(pod, *job, kTrainJobStep);
  world.reads_input = step.empty() || step == "trainer";
  ASSIGN_OR_RETURN(const int64_t replicas, NumberIn(pod, "labels", kReplicas));
  ASSIGN_OR_RETURN(const int64_t job_index, NumberIn(pod, "labels", kJobIndex));
  const int64_t completions = SpecNumber(*job, {"completions"}, 1);
  int64_t within = 0;
  if (completions > 1) {
    ASSIGN_OR_RETURN(within, NumberIn(pod, "labels", kCompletionIndexLabel));
  }
  world.num_workers = facts.workers.value_or(replicas * completions);
  world.index = job_index * completions + within;
  world.first_host = set + "-" + replicated + "-0-0";
  world.owner = step.empty() ? "JobSet/" + set + "/" + replicated : "TrainJob/" + set;

  std::string uid = EitherLabel(pod, *job, kSetUid);
  const json* set_ref = kube::ControllerOf(*job);
  if (uid.empty() && set_ref != nullptr) uid = kube::StringAt(*set_ref, {"uid"});
  // Several of its replicated jobs may read, each by itself.
  world.run_id = (uid.empty() ? set : uid) + "/" + replicated + "/" + EitherLabel(pod, *job, kRestart);
  return std::optional(world);
}

// Declared in workload.h.
Result<World> WorldOfReplicatedJob(const json& replicated_job, const json& pod_template) {
  ASSIGN_OR_RETURN(const std::optional<int64_t> annotated, AnnotatedWorkers(pod_template));
  const json& job = kube::ObjectAt(replicated_job, {"template"});
  const auto replicas = replicated_job.find("replicas");
  const int64_t jobs = replicas != replicated_job.end() && replicas->is_number_integer() ? replicas->get<int64_t>() : 1;
  const std::string step = EitherLabel(pod_template, job, kTrainJobStep);
  World world;
  world.placed = false;
  world.reads_input = step.empty() || step == "trainer";
  world.num_workers = annotated.value_or(jobs * SpecNumber(job, {"completions"}, 1));
  return world;
}

}  // namespace headrace::op
