#include "sidecar/distribute/deal.h"

#include <utility>

namespace headrace::side {
namespace {

int64_t LastBatchSize(const InputSpec& spec) {
  int64_t size = 1;
  for (const Transformation& transformation : spec.pipeline) {
    if (const auto* batch = std::get_if<headrace::Batch>(&transformation)) size = batch->size;
  }
  return size;
}

std::unique_ptr<Cut> MakeCut(const Plan& plan, const Topology& topology, std::unique_ptr<Stream<Batch>> batches) {
  const int64_t replicas = topology.replicas_in_sync();
  if (replicas == 1) return PassWhole(std::move(batches));
  if (plan.spec.distribution.rebatch == Rebatch::kPerBatch || plan.effective_policy == AutoShardPolicy::kData) {
    return CutPerBatch(std::move(batches), replicas);
  }
  return CutContinuous(std::move(batches), LastBatchSize(plan.spec), replicas,
                       topology.worker_index * topology.replicas_per_worker);
}

}  // namespace

bool MayDropLastStep(const Topology& topology, const std::vector<TensorSpec>& components) {
  if (topology.num_workers > 1 || topology.replicas_per_worker == 1) return false;
  for (const TensorSpec& component : components) {
    for (const int64_t dim : component.shape) {
      if (dim == kUnknownDim) return false;
    }
  }
  return true;
}

Deal::Deal(const Plan& plan, const Topology& topology, std::unique_ptr<Stream<Batch>> batches)
    : cut_(MakeCut(plan, topology, std::move(batches))),
      replicas_(topology.replicas_per_worker),
      keep_every_(plan.effective_policy == AutoShardPolicy::kData ? topology.num_workers : 1),
      keep_first_(plan.effective_policy == AutoShardPolicy::kData ? topology.worker_index : 0) {}

Result<bool> Deal::NextKept(Piece* piece) {
  // Pieces of other workers are passed over: what is not delivered here need not be read.
  const int64_t others = (keep_first_ - pieces_ % keep_every_ + keep_every_) % keep_every_;
  if (others > 0) {
    ASSIGN_OR_RETURN(const uint64_t passed, cut_->PassOver(static_cast<uint64_t>(others)));
    pieces_ += static_cast<int64_t>(passed);
    if (passed < static_cast<uint64_t>(others)) return false;
  }
  ASSIGN_OR_RETURN(const bool more, cut_->Next(piece));
  pieces_ += more ? 1 : 0;
  return more;
}

Result<bool> Deal::Next(Dealt* dealt) {
  dealt->step = delivered_ / replicas_;
  dealt->replica = delivered_ % replicas_;
  if (!ended_) {
    ASSIGN_OR_RETURN(const bool more, NextKept(&dealt->piece));
    ended_ = !more;
  }
  // A last, incomplete step is filled up with batches of size 0.
  if (ended_ && dealt->replica == 0) return false;
  dealt->spare = ended_;
  if (ended_) {
    dealt->piece.records.clear();
    dealt->piece.rows = 0;
  }
  ++delivered_;
  return true;
}

Status Deal::PassOverSteps(int64_t steps) {
  if (steps == 0) return {};
  // Of the pieces that we keep, every keep_every_-th from keep_first_, so many as the steps take.
  const int64_t kept = steps * replicas_;
  const int64_t pieces = (kept - 1) * keep_every_ + keep_first_ + 1;
  ASSIGN_OR_RETURN(const uint64_t passed, cut_->PassOver(static_cast<uint64_t>(pieces)));
  pieces_ = static_cast<int64_t>(passed);
  ended_ = pieces_ < pieces;
  delivered_ = kept;
  return {};
}

}  // namespace headrace::side
