#include "common/spec/plan.h"

#include <nlohmann/json.hpp>

#include "common/spec/sha256.h"
#include "common/spec/transformations.h"
#include "common/spec/warnings.h"

namespace headrace {
namespace {

using nlohmann::json;

std::string HashOf(const InputSpec& spec) {
  // The apiVersion is part of it: the same words may mean something else in another version. nlohmann's objects are
  // sorted by key, so equal specs have equal texts.
  const std::string text = "headrace.dev/v1alpha1 " + ToJson(spec).dump();
  const std::array<uint8_t, 32> digest = Sha256(text);
  static constexpr char kHex[] = "0123456789abcdef";
  std::string hash;
  for (size_t i = 0; i < 8; ++i) {
    hash += kHex[digest[i] >> 4];
    hash += kHex[digest[i] & 15];
  }
  return hash;
}

// Why the source cannot be sharded by file; empty if it can.
std::string WhyNotByFile(const InputSpec& spec) {
  if (!std::holds_alternative<FilesSource>(spec.source)) {
    return "spec.source." + std::string(SourceName(spec.source)) + " has no files to shard";
  }
  // As in TensorFlow, where enumerate is a zip with a range, and a range is no source that can be sharded.
  if (NumbersRecords(spec.pipeline)) return "enumerate in spec.pipeline numbers the records of all files";
  return "";
}

bool HasHint(const std::vector<Transformation>& pipeline) {
  for (const Transformation& transformation : pipeline) {
    const auto* shard = std::get_if<Shard>(&transformation);
    if (shard != nullptr && shard->hint) return true;
  }
  return false;
}

std::string Plural(int64_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

// TPU programs are compiled for one shape: every batch of every replica must have it.
Status CheckStatic(const Plan& plan, int64_t replicas) {
  const ElementShape element = PipelineElement(plan.spec);
  for (const TensorSpec& component : element.components) {
    for (size_t d = 0; d < component.shape.size(); ++d) {
      if (component.shape[d] != kUnknownDim) continue;  // a record's dimensions are known: ParseInputSpec sees to it
      return InvalidArgument("spec.distribution.strategy: TPU demands static shapes, and dimension " +
                             std::to_string(d) + " of component \"" + component.name + "\" can vary: " +
                             component.ToString() + "; give every batch of spec.pipeline dropRemainder: true");
    }
  }
  const int64_t batch = element.batch_dims == 0 ? replicas : element.components[0].shape[0];
  if (batch % replicas == 0) return {};
  return InvalidArgument("spec.distribution.strategy: TPU demands static shapes, and a global batch of " +
                         std::to_string(batch) + " cannot be cut into " + std::to_string(replicas) +
                         " equal parts, one for each replica; make the size of the last batch of spec.pipeline " +
                         std::to_string(batch / replicas * replicas) + " or " +
                         std::to_string((batch / replicas + 1) * replicas));
}

}  // namespace

Status CheckForPods(const InputSpec& spec) {
  const auto* function = std::get_if<FunctionSource>(&spec.source);
  if (function == nullptr || !function->container.empty()) return {};
  return InvalidArgument(
      "spec.source.function.container: is required on Kubernetes; a command alone is for local runs (headrace run)");
}

Plan CompilePlan(InputSpec spec, std::string input) {
  Plan plan;
  plan.input = std::move(input);
  plan.hash = HashOf(spec);
  const bool files = std::holds_alternative<FilesSource>(spec.source);
  plan.effective_policy = spec.distribution.auto_shard_policy;
  if (std::holds_alternative<FunctionSource>(spec.source)) {
    if (plan.effective_policy != AutoShardPolicy::kAuto && plan.effective_policy != AutoShardPolicy::kOff) {
      plan.warnings.push_back("spec.distribution.autoShardPolicy: " + std::string(PolicyName(plan.effective_policy)) +
                              " has no effect on spec.source.function: shard in the function, by the InputContext that "
                              "it gets");
    }
    plan.effective_policy = AutoShardPolicy::kOff;
  } else if (spec.distribution.strategy == Strategy::kParameterServer) {
    plan.effective_policy = AutoShardPolicy::kOff;
  } else if (plan.effective_policy == AutoShardPolicy::kAuto) {
    const std::string reason = WhyNotByFile(spec);
    plan.effective_policy = reason.empty() ? AutoShardPolicy::kFile : AutoShardPolicy::kData;
    if (!reason.empty()) {
      plan.warnings.push_back("spec.distribution.autoShardPolicy: Auto became Data, since " + reason +
                              ": every worker reads the whole source and keeps its own share; "
                              "set Data to say so, or Off to give every worker everything");
    }
  }
  if (plan.effective_policy == AutoShardPolicy::kHint && !HasHint(spec.pipeline) &&
      !(files && HasHint(std::get<FilesSource>(spec.source).pipeline))) {
    plan.warnings.push_back(
        "spec.distribution.autoShardPolicy: Hint without a shard: {by: Hint} in a pipeline shards nothing: every "
        "worker reads everything");
  }
  plan.spec = std::move(spec);
  AddWarnings(&plan);
  return plan;
}

std::string PolicyReason(const Plan& plan) {
  if (std::holds_alternative<FunctionSource>(plan.spec.source)) {
    return "the function shards by itself: what it yields is delivered as it is";
  }
  const bool files = std::holds_alternative<FilesSource>(plan.spec.source);
  std::string why;
  if (plan.spec.distribution.auto_shard_policy == AutoShardPolicy::kAuto) {
    why = files ? "Auto, and the source reads files: " : "Auto, and the source has no files to share out: ";
  }
  switch (plan.effective_policy) {
    case AutoShardPolicy::kFile: return why + "worker w of W reads the files w, w+W, w+2W, ... and no other";
    case AutoShardPolicy::kData: return why + "all workers read the same and keep every W-th piece of the batches";
    case AutoShardPolicy::kOff: return why + "nothing is sharded: every worker delivers all the data";
    case AutoShardPolicy::kHint: return why + "each shard: {by: Hint} in a pipeline becomes shard(workers, worker)";
    case AutoShardPolicy::kAuto: break;
  }
  return why;
}

json ToJson(const Plan& plan) {
  return {{"apiVersion", "headrace.dev/v1alpha1"},
          {"kind", "Plan"},
          {"hash", plan.hash},
          {"input", plan.input},
          {"spec", ToJson(plan.spec)},
          {"effectivePolicy", PolicyName(plan.effective_policy)},
          {"warnings", plan.warnings}};
}

Result<Plan> ParsePlan(const json& plan) {
  if (!plan.is_object() || plan.value("kind", json()) != "Plan" || !plan.contains("spec")) {
    return InvalidArgument("not a plan: an object with kind \"Plan\" and a spec is expected");
  }
  auto spec = ParseInputSpec(plan["spec"]);
  RETURN_IF_ERROR(spec, "plan");
  const json input = plan.value("input", json(""));
  Plan parsed = CompilePlan(std::move(spec).value(), input.is_string() ? input.get<std::string>() : "");
  const json hash = plan.value("hash", json());
  if (hash != parsed.hash) {
    return InvalidArgument("plan: its hash is " + hash.dump() + " and its spec's is \"" + parsed.hash +
                           "\": it was changed, or made by another version of Headrace");
  }
  return parsed;
}

Topology SharingTopology(const Plan& plan, const Topology& topology) {
  if (plan.spec.distribution.strategy != Strategy::kParameterServer) return topology;
  return {1, 0, topology.replicas_per_worker};
}

bool AgreesOnEnds(const Plan& plan, const Topology& topology) {
  // Mirrored is refused for several workers: there is nobody to agree with.
  return SharingTopology(plan, topology).num_workers > 1 && plan.spec.distribution.strategy != Strategy::kMirrored;
}

Status CheckTopology(const Plan& plan, const Topology& run) {
  const Topology topology = SharingTopology(plan, run);
  const int64_t workers = topology.num_workers;
  const int64_t replicas = topology.replicas_in_sync();
  if (workers > 1 && plan.spec.distribution.strategy == Strategy::kMirrored) {
    return InvalidArgument("spec.distribution.strategy: Mirrored is for one worker, and the run has " +
                           std::to_string(workers) + "; use MultiWorkerMirrored");
  }
  const bool function = std::holds_alternative<FunctionSource>(plan.spec.source);
  if (replicas > 1 && !function && PipelineElement(plan.spec).batch_dims == 0) {
    return InvalidArgument("spec.pipeline: its elements have no batch dimension, so they cannot be split over " +
                           Plural(replicas, "replica") + " (" + Plural(workers, "worker") + " x " +
                           std::to_string(topology.replicas_per_worker) +
                           "); add a batch whose size is the global batch");
  }
  if (const std::string reason = WhyNotByFile(plan.spec);
      workers > 1 && plan.effective_policy == AutoShardPolicy::kFile && !reason.empty()) {
    return InvalidArgument("spec.distribution.autoShardPolicy: File shares out files among " +
                           Plural(workers, "worker") + ", and " + reason + "; use Auto or Data");
  }
  if (plan.spec.distribution.strategy == Strategy::kTpu && !function) return CheckStatic(plan, replicas);
  return {};
}

}  // namespace headrace
