// The user's own dataset function as a feed: its elements are the replicas' batches, in turn, as they are.
//
// Source of the rules: tests/conformance/README.md, "from_function", "Replicas" and "element_spec", which real
// TensorFlow was held to.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sidecar/loader/feed.h"
#include "sidecar/loader/function_peer.h"

namespace headrace::side {

class FunctionFeed : public Feed {
 public:
  // Starts epoch 0 and asks for its first element, which tells the types where the function does not declare them, and
  // the size of a slot. Errors: the function's own; InvalidArgument if there is no element to tell and none declared.
  static Result<std::unique_ptr<FunctionFeed>> Create(Plan plan, const Topology& topology,
                                                      std::unique_ptr<FunctionPeer> peer);

  Status LendRings(const std::vector<std::unique_ptr<ring::RingWriter>>& rings) override;

  Result<std::unique_ptr<FeedEpoch>> Start(const ring::Position& start) override;
  const Plan& plan() const override { return plan_; }
  const Topology& topology() const override { return topology_; }
  const std::vector<TensorSpec>& element_spec() const override { return element_spec_; }
  uint64_t max_bytes() const override { return max_bytes_; }
  bool holds_steps() const override;
  int64_t cardinality() const override { return cardinality_; }
  uint64_t run_seed() const override { return 1; }  // the function shuffles, or does not
  uint64_t bytes_read() const override { return 0; }
  StageTimes read_times() const override { return read_clock_.times(); }
  int64_t default_prefetch_steps() const override { return 0; }  // nothing is computed before it is asked for

 private:
  class Epoch;
  FunctionFeed(Plan plan, const Topology& topology, const Topology& sharing, std::unique_ptr<FunctionPeer> peer)
      : plan_(std::move(plan)), topology_(topology), sharing_(sharing), peer_(std::move(peer)) {}

  // Begins an epoch in the function's process.
  Result<ring::EpochStarted> Begin(uint64_t epoch);
  // Its next element; nothing at the end.
  Result<std::optional<ring::Element>> Advance();
  Status Failed(const Status& status) const;
  Status CheckElement(const ring::Element& element) const;
  void SetElementSpec(const std::vector<TensorSpec>& components);
  // Where its tensors lie in a slot; returns the end of the last.
  static uint64_t Extents(const ring::Element& element, std::vector<ring::ComponentExtent>* extents);

  const Plan plan_;
  const Topology topology_;
  const Topology sharing_;  // of the workers that share the data with this one
  const std::unique_ptr<FunctionPeer> peer_;
  std::vector<TensorSpec> declared_;  // what each element must be
  std::vector<TensorSpec> element_spec_;
  int64_t cardinality_ = kUnknownCardinality;
  uint64_t max_bytes_ = 0;
  uint64_t epoch_ = 0;     // begun in the function's process
  uint64_t elements_ = 0;  // it yielded in this epoch
  // Of epoch 0, taken at the start and not yet delivered. Its inner optional is empty where there is none.
  std::optional<std::optional<ring::Element>> first_;
  std::vector<const ring::RingWriter*> rings_;
  StageClock read_clock_;  // all is waiting for the function
};

}  // namespace headrace::side
