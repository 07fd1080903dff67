// Which pieces a worker keeps, and which replica gets each at which step.
// Source of the rules: tests/conformance/README.md, "Dealing" and "Replicas".
#pragma once

#include <memory>

#include "common/spec/plan.h"
#include "sidecar/distribute/cut.h"

namespace headrace::side {

struct Dealt {
  int64_t step = 0;
  int64_t replica = 0;
  Piece piece;         // without rows where the replica has no data at this step
  bool spare = false;  // there was no piece left for this replica: it fills up the last step
};

// The deliveries of one worker in one epoch, in order: steps ascending, replicas ascending within a step, every step
// whole.
// With one worker and static shapes, TensorFlow's next() drops a last step that not every replica has data for, while
// get_next_as_optional() fills it up. `components` are those before the cut.
bool MayDropLastStep(const Topology& topology, const std::vector<TensorSpec>& components);

class Deal {
 public:
  Deal(const Plan& plan, const Topology& topology, std::unique_ptr<Stream<Batch>> batches);

  // false: the epoch is over.
  Result<bool> Next(Dealt* dealt);
  // Passes over whole steps, from the first, as if Next had gone to them. Where the epoch has fewer, it is over.
  // REQUIRES: Next was not called yet.
  Status PassOverSteps(int64_t steps);

 private:
  Result<bool> NextKept(Piece* piece);

  std::unique_ptr<Cut> cut_;
  const int64_t replicas_;    // of this worker
  const int64_t keep_every_;  // Data keeps pieces keep_first_, + keep_every_, ...; the others keep all
  const int64_t keep_first_;
  int64_t pieces_ = 0;  // of the cut so far
  int64_t delivered_ = 0;
  bool ended_ = false;
};

}  // namespace headrace::side
