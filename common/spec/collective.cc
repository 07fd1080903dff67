#include "common/spec/collective.h"

#include <nlohmann/json.hpp>

#include "common/spec/object_reader.h"

namespace headrace {
namespace {

using nlohmann::json;

constexpr int64_t kLongestTimeout = 3600;

// Why nothing can be exchanged, whatever the backend; "" if it can.
std::string WhyNothing(const Plan& plan) {
  const Distribution& distribution = plan.spec.distribution;
  if (distribution.strategy == Strategy::kMirrored) return "strategy Mirrored has one worker";
  if (distribution.strategy == Strategy::kParameterServer) {
    return "under strategy ParameterServer each worker reads in an order of its own";
  }
  if (!std::holds_alternative<FilesSource>(plan.spec.source)) {
    return "spec.source." + std::string(SourceName(plan.spec.source)) + " is not read from storage";
  }
  if (plan.effective_policy == AutoShardPolicy::kOff && distribution.rebatch == Rebatch::kContinuous) {
    return "rebatch Continuous cuts the batches of each worker in another way";
  }
  if (plan.effective_policy == AutoShardPolicy::kOff || plan.effective_policy == AutoShardPolicy::kData) return "";
  return "under policy " + std::string(PolicyName(plan.effective_policy)) + " no two workers read the same";
}

}  // namespace

Collective ParseCollective(const json& object, const std::string& path, std::vector<FieldError>* errors) {
  ObjectReader reader(object, path, errors);
  Collective collective;
  collective.backend = reader.Enum<CollectiveBackend>(
      "backend", {{"TCP", CollectiveBackend::kTcp}, {"NCCL", CollectiveBackend::kNccl}}, CollectiveBackend::kTcp);
  enum class OnError { kFallBack, kFail };
  collective.falls_back = reader.Enum<OnError>("onError", {{"FallBack", OnError::kFallBack}, {"Fail", OnError::kFail}},
                                               OnError::kFallBack) == OnError::kFallBack;
  collective.timeout_seconds = reader.Int("timeoutSeconds", 1, kLongestTimeout).value_or(Collective().timeout_seconds);
  for (const char* name : {"onError", "timeoutSeconds"}) {
    if (reader.Has(name) && collective.backend == CollectiveBackend::kTcp) {
      reader.Error(name, "goes with backend NCCL; remove it, or set backend");
    }
  }
  return collective;
}

json CollectiveToJson(const Collective& collective) {
  return {{"backend", collective.backend == CollectiveBackend::kNccl ? "NCCL" : "TCP"},
          {"onError", collective.falls_back ? "FallBack" : "Fail"},
          {"timeoutSeconds", collective.timeout_seconds}};
}

void CheckCollective(const InputSpec& spec, std::vector<FieldError>* errors) {
  if (spec.distribution.collective.backend != CollectiveBackend::kNccl) return;
  const Delivery& delivery = spec.delivery;
  if (delivery.memory == MemoryKind::kDevice || !delivery.resource_claim.empty()) return;
  errors->push_back({"spec.distribution.collective.backend",
                     "NCCL needs loaders that hold a GPU, and with spec.delivery.memory " +
                         std::string(MemoryKindName(delivery.memory)) +
                         " they hold none; set memory to Device, or to Auto with a resourceClaim, or backend to TCP"});
}

Exchanged WhatIsExchanged(const Plan& plan) {
  if (plan.spec.distribution.collective.backend != CollectiveBackend::kNccl || !WhyNothing(plan).empty()) {
    return Exchanged::kNothing;
  }
  return plan.effective_policy == AutoShardPolicy::kOff ? Exchanged::kSame : Exchanged::kParts;
}

std::string ExchangeReason(const Plan& plan) {
  if (plan.spec.distribution.collective.backend != CollectiveBackend::kNccl) return "";
  if (const std::string why = WhyNothing(plan); !why.empty()) return "nothing, since " + why;
  return WhatIsExchanged(plan) == Exchanged::kSame
             ? "worker 0 reads, and hands every batch to all workers"
             : "worker 0 reads, and hands each worker its batches, where the files cannot be cut: compressed ones, "
               "remote ones, and any below a filter, cache, pack or bucketBatch";
}

}  // namespace headrace
