// What the replicas of one worker get, whatever it comes from: a pipeline over a source, or the user's own function.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "common/ring/writer.h"
#include "common/spec/plan.h"

namespace headrace::side {

// One epoch of a feed: deliveries in order, steps ascending from 0, replicas ascending within a step, every step whole.
class FeedEpoch {
 public:
  struct Delivery {
    int64_t step = 0;
    int64_t replica = 0;  // of this worker
    int64_t rows = 0;     // 0 where the replica has no data at this step
    int64_t records = 0;
    bool spare = false;  // there was nothing left for this replica: it fills up the last step
  };

  virtual ~FeedEpoch() = default;
  // Goes to the next delivery. false: the epoch is over.
  virtual Result<bool> Next(Delivery* delivery) = 0;
  // Writes the tensors of the delivery that Next went to; a replica without data gets zero rows. At most once a
  // delivery. `extents` gets one entry a component. Errors name where the data is wrong, or that it outgrew the slot.
  virtual Status Write(uint8_t* slot, uint64_t slot_bytes, std::vector<ring::ComponentExtent>* extents) = 0;
};

// Used by one thread, but for bytes_read().
class Feed {
 public:
  virtual ~Feed() = default;
  // Called once, before Start, with the rings that the epochs' Write will write to.
  virtual Status LendRings(const std::vector<std::unique_ptr<ring::RingWriter>>&) { return {}; }
  // Starts an epoch at a step of it; `start.seed` must be set. At most one epoch at a time; the feed must outlive it.
  virtual Result<std::unique_ptr<FeedEpoch>> Start(const ring::Position& start) = 0;

  virtual const Plan& plan() const = 0;
  virtual const Topology& topology() const = 0;
  // The type of one replica's batch.
  virtual const std::vector<TensorSpec>& element_spec() const = 0;
  // Of the largest batch, all components aligned to ring::kTensorAlign.
  virtual uint64_t max_bytes() const = 0;
  // Whether next() may end before a last step that is not whole: such a step must be known before it is published.
  virtual bool holds_steps() const = 0;
  virtual int64_t cardinality() const = 0;
  virtual uint64_t run_seed() const = 0;    // of shuffles without a seed, unless a position brings another
  virtual uint64_t bytes_read() const = 0;  // from storage, so far; by any thread
  // Batches that lie ready before the trainer asks, by default.
  virtual int64_t default_prefetch_steps() const = 0;
};

// Where the tensors of a batch without rows lie: zero in the first dimension, and zero for others that are not known.
// A component without dimensions keeps its one value, set to zero. The slot must hold what it takes.
void WriteEmpty(const std::vector<TensorSpec>& element_spec, uint8_t* slot,
                std::vector<ring::ComponentExtent>* extents);

// The end of a component that begins at `begin`, and so the begin of the next.
inline uint64_t AlignTensor(uint64_t end) {
  return (end + ring::kTensorAlign - 1) / ring::kTensorAlign * ring::kTensorAlign;
}

}  // namespace headrace::side
