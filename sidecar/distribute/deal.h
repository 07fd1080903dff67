// Which pieces a worker keeps, and which replica gets each at which step.
// Source of the rules: tests/conformance/README.md, "Dealing" and "Replicas".
#pragma once

#include <memory>
#include <vector>

#include "common/spec/plan.h"
#include "sidecar/distribute/cut.h"

namespace headrace::side {

struct Delivery {
  int64_t step = 0;
  int64_t replica = 0;
  Piece piece;           // without rows where the replica has no data at this step
  bool partial = false;  // ring::kPartialStep
};

// The deliveries of one worker in one epoch, in order: steps ascending, replicas ascending within a step, every step
// whole.
class Deal {
 public:
  Deal(const Plan& plan, const Topology& topology, std::unique_ptr<Stream<Batch>> batches);

  // Valid until the next call. false: the epoch is over.
  Result<bool> Next(Delivery* delivery);

 private:
  Result<bool> NextKept(Piece* piece);
  Result<bool> NextOfHeldStep(Delivery* delivery);

  std::unique_ptr<Cut> cut_;
  const int64_t replicas_;    // of this worker
  const int64_t keep_every_;  // Data keeps pieces keep_first_, + keep_every_, ...; the others keep all
  const int64_t keep_first_;
  const bool hold_steps_;  // know whether a step is whole before any of it is delivered
  int64_t pieces_ = 0;     // of the cut so far
  int64_t delivered_ = 0;
  bool ended_ = false;
  std::vector<Batch> held_;  // one step's pieces
  size_t held_begin_ = 0;
  bool held_partial_ = false;
};

}  // namespace headrace::side
