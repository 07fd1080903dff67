#include "common/spec/warnings.h"

#include <algorithm>
#include <array>

#include "common/spec/collective.h"
#include "common/spec/components.h"

namespace headrace {
namespace {

// Where the first transformation of type T stands at or after `from`; the pipeline's length if there is none.
template <typename T>
size_t Find(const Plan& plan, size_t from = 0) {
  const std::vector<Transformation>& pipeline = plan.spec.pipeline;
  size_t i = from;
  while (i < pipeline.size() && !std::holds_alternative<T>(pipeline[i])) ++i;
  return i;
}

bool Stands(const Plan& plan, size_t i) { return i < plan.spec.pipeline.size(); }

std::string Field(const Plan& plan, size_t i) {
  return "spec.pipeline[" + std::to_string(i) + "]." + std::string(TransformationName(plan.spec.pipeline[i]));
}

// The sizes of those that are cut; none without a batch.
std::vector<int64_t> GlobalBatches(const Plan& plan) {
  std::vector<int64_t> sizes;
  for (const Transformation& transformation : plan.spec.pipeline) {
    const auto* batch = std::get_if<Batch>(&transformation);
    if (batch != nullptr) sizes = batch->buckets ? batch->buckets->sizes : std::vector{batch->size};
  }
  return sizes;
}

std::string ShuffleOfBatches(const Plan& plan) {
  const size_t shuffle = Find<Shuffle>(plan, Find<Batch>(plan));
  if (!Stands(plan, shuffle)) return "";
  return Field(plan, shuffle) +
         ": stands after a batch, so it shuffles whole batches, and the records of each stay together; put it before "
         "the batch to shuffle records";
}

std::string ShuffleOfEndless(const Plan& plan) {
  for (size_t i = 0; Stands(plan, i = Find<Repeat>(plan, i)); ++i) {
    const size_t shuffle = Find<Shuffle>(plan, i);
    if (std::get<Repeat>(plan.spec.pipeline[i]).count == 1 || !Stands(plan, shuffle)) continue;
    return Field(plan, shuffle) + ": stands after " + Field(plan, i) +
           ", so records of one repetition mix with those of the next, and some come twice before others come once; "
           "put "
           "it before the repeat to shuffle each repetition by itself";
  }
  return "";
}

std::string CacheOfShuffled(const Plan& plan) {
  const size_t cache = Find<Cache>(plan);
  for (size_t i = 0; Stands(plan, cache) && (i = Find<Shuffle>(plan, i)) < cache; ++i) {
    if (!std::get<Shuffle>(plan.spec.pipeline[i]).reshuffle_each_iteration) continue;
    return Field(plan, cache) + ": stands after " + Field(plan, i) +
           ", so every epoch has the order of the first; put it before the shuffle to reshuffle each epoch, or say "
           "reshuffleEachIteration: false there";
  }
  return "";
}

std::string CacheNeverFilled(const Plan& plan) {
  const size_t cache = Find<Cache>(plan);
  for (size_t i = 0; Stands(plan, cache) && (i = Find<Repeat>(plan, i)) < cache; ++i) {
    if (std::get<Repeat>(plan.spec.pipeline[i]).count >= 0) continue;
    return Field(plan, cache) + ": stands after an endless " + Field(plan, i) +
           ", so it grows without end and is never read; put it before the repeat";
  }
  const size_t take = Find<Take>(plan, cache);
  if (!Stands(plan, take)) return "";
  return Field(plan, cache) + ": is filled by a whole pass only, and " + Field(plan, take) +
         " after it may end each pass before; put the cache after the take";
}

std::string SeededParameterServer(const Plan& plan) {
  if (plan.spec.distribution.strategy != Strategy::kParameterServer) return "";
  for (size_t i = 0; Stands(plan, i = Find<Shuffle>(plan, i)); ++i) {
    if (!std::get<Shuffle>(plan.spec.pipeline[i]).seed) continue;
    return Field(plan, i) +
           ".seed: under strategy ParameterServer each worker reads everything by itself, and with a seed all see the "
           "same order; leave the seed out to give each worker an order of its own";
  }
  return "";
}

std::string ReplicasOfClaim(const Plan& plan) {
  const Delivery& delivery = plan.spec.delivery;
  const bool shares = delivery.memory == MemoryKind::kDevice || !delivery.resource_claim.empty();
  if (!shares || plan.spec.distribution.replicas_per_worker) return "";
  return "spec.distribution.replicasPerWorker: is left out, and how many GPUs a resource claim holds cannot be told "
         "from a pod, so each worker has 1 replica; give the number of GPUs of the claim";
}

std::string NothingExchanged(const Plan& plan) {
  const std::string reason = ExchangeReason(plan);
  if (reason.empty() || WhatIsExchanged(plan) != Exchanged::kNothing) return "";
  return "spec.distribution.collective.backend: NCCL carries " + reason + "; leave it out";
}

std::string UnevenBatch(const Plan& plan, const Topology& topology) {
  const int64_t replicas = topology.replicas_in_sync();
  const std::vector<int64_t> sizes = GlobalBatches(plan);
  const auto uneven = std::find_if(sizes.begin(), sizes.end(), [&](int64_t size) { return size % replicas != 0; });
  if (uneven == sizes.end()) return "";
  const int64_t batch = *uneven;
  return "spec.pipeline: a global batch of " + std::to_string(batch) + " is cut for " + std::to_string(replicas) +
         " replicas in sync, so some get fewer records than others at every step, or none; make the size of the last "
         "batch a multiple of " +
         std::to_string(replicas);
}

// Under File and Hint each worker has records of its own.
bool ShardsBeforePipeline(const Plan& plan, const Topology& topology) {
  return topology.num_workers > 1 && plan.effective_policy == AutoShardPolicy::kFile;
}

std::string CountsOnEachWorker(const Plan& plan, const Topology& topology) {
  if (!ShardsBeforePipeline(plan, topology)) return "";
  for (size_t i = 0; i < plan.spec.pipeline.size(); ++i) {
    const Transformation& transformation = plan.spec.pipeline[i];
    const auto* batch = std::get_if<Batch>(&transformation);
    const bool counts = std::holds_alternative<Take>(transformation) || std::holds_alternative<Skip>(transformation);
    if (!counts && (batch == nullptr || !batch->drop_remainder)) continue;
    return Field(plan, i) + (counts ? "" : ".dropRemainder") +
           ": under policy File it acts on the records of each of the " + std::to_string(topology.num_workers) +
           " workers by themselves, not on the data set as a whole; set spec.distribution.autoShardPolicy to Data if "
           "the whole is meant";
  }
  return "";
}

// What becomes of records whose number follows from what they hold; "" where it does not.
std::string_view LooksAndDoes(const Transformation& transformation) {
  if (std::holds_alternative<Filter>(transformation)) return "filters";
  if (std::holds_alternative<Pack>(transformation)) return "packs";
  const auto* batch = std::get_if<Batch>(&transformation);
  return batch != nullptr && batch->buckets ? "buckets" : "";
}

std::string UnequalShards(const Plan& plan, const Topology& topology) {
  size_t looks = 0;
  while (Stands(plan, looks) && LooksAndDoes(plan.spec.pipeline[looks]).empty()) ++looks;
  if (!ShardsBeforePipeline(plan, topology) || !Stands(plan, looks) || IsEndless(plan.spec)) return "";
  return Field(plan, looks) + ": under policy File each worker " +
         std::string(LooksAndDoes(plan.spec.pipeline[looks])) +
         " its own files, so workers may be left with unequal numbers of "
         "records, "
         "and those with fewer get batches without rows until the last one ends; repeat endlessly and count steps, or "
         "set spec.distribution.autoShardPolicy to Data";
}

std::string EmptyBatchesOnTpu(const Plan& plan, const Topology& topology) {
  if (plan.spec.distribution.strategy != Strategy::kTpu || !ShardsBeforePipeline(plan, topology) ||
      IsEndless(plan.spec)) {
    return "";
  }
  return "spec.distribution.autoShardPolicy: under File, workers whose files hold fewer batches get batches without "
         "rows "
         "until the last one ends, which a TPU program of static shapes cannot take; repeat endlessly and count steps, "
         "or use Data";
}

using PlanWarning = std::string (*)(const Plan&);
constexpr std::array<PlanWarning, 7> kPlanWarnings = {ShuffleOfBatches, ShuffleOfEndless,      CacheOfShuffled,
                                                      CacheNeverFilled, SeededParameterServer, ReplicasOfClaim,
                                                      NothingExchanged};

using TopologyWarning = std::string (*)(const Plan&, const Topology&);
constexpr std::array<TopologyWarning, 4> kTopologyWarnings = {UnevenBatch, CountsOnEachWorker, UnequalShards,
                                                              EmptyBatchesOnTpu};

}  // namespace

void AddWarnings(Plan* plan) {
  for (const PlanWarning& warning : kPlanWarnings) {
    if (std::string text = warning(*plan); !text.empty()) plan->warnings.push_back(std::move(text));
  }
}

std::vector<std::string> TopologyWarnings(const Plan& plan, const Topology& topology) {
  std::vector<std::string> warnings;
  for (const TopologyWarning& warning : kTopologyWarnings) {
    if (std::string text = warning(plan, SharingTopology(plan, topology)); !text.empty()) {
      warnings.push_back(std::move(text));
    }
  }
  return warnings;
}

}  // namespace headrace
