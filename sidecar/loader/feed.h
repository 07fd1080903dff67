// What the replicas of one worker get, whatever it comes from: a pipeline over a source, or the user's own function.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/ring/writer.h"
#include "common/spec/gpu_images.h"
#include "common/spec/plan.h"
#include "sidecar/loader/stage_times.h"

namespace headrace::side {

// One epoch of a feed: deliveries in order, steps ascending from 0, replicas ascending within a step, every step whole.
//
// A delivery is written to its slot in parts: Begin, then each part once, by any threads at a time, then End. Several
// deliveries may be in work at a time; they End in their order. All but WritePart are one thread's.
class FeedEpoch {
 public:
  struct Delivery {
    int64_t step = 0;
    int64_t replica = 0;  // of this worker
    int64_t rows = 0;     // 0 where the replica has no data at this step
    int64_t records = 0;
    bool spare = false;   // there was nothing left for this replica: it fills up the last step
    uint64_t number = 0;  // of the epoch's deliveries: how the feed knows it again
  };
  // Where a delivery goes: its slot, and one entry a component that says where its tensor lies there.
  struct Place {
    uint8_t* slot = nullptr;
    uint64_t slot_bytes = 0;
    std::vector<ring::ComponentExtent> extents;
  };
  enum class Next {
    kDelivery,
    kEnd,     // the epoch is over
    kNotYet,  // it is still being read: the loader's signal is raised when that has changed
  };

  virtual ~FeedEpoch() = default;
  // Goes to the next delivery.
  virtual Result<Next> Advance(Delivery* delivery) = 0;
  // Lays the delivery out, and returns how many parts are to be written; a replica without data gets zero rows. Errors
  // say that the data outgrew the slot.
  virtual Result<size_t> Begin(const Delivery& delivery, Place* place) = 0;
  // `thread` is below Feed's thread count; no two calls at a time have the same. Errors name where the data is wrong.
  // A delivery of one part may find out only then where its components lie.
  virtual Status WritePart(const Delivery& delivery, size_t part, size_t thread, Place* place) = 0;
  // After the last part: what the delivery turned out to be.
  virtual Status End(Delivery* delivery, Place* place) = 0;
};

// Used by one thread, but for what says otherwise.
class Feed {
 public:
  virtual ~Feed() = default;
  // Called once, before Start, with the rings that the epochs' Write will write to.
  virtual Status LendRings(const std::vector<std::unique_ptr<ring::RingWriter>>&) { return {}; }
  // Starts an epoch at a step of it; `start.seed` must be set. At most one epoch at a time; the feed must outlive it.
  // Destroying an epoch ends what it does in the background. REQUIRES: no WritePart runs then.
  virtual Result<std::unique_ptr<FeedEpoch>> Start(const ring::Position& start) = 0;

  virtual const Plan& plan() const = 0;
  virtual const Topology& topology() const = 0;
  // The type of one replica's batch.
  virtual const std::vector<TensorSpec>& element_spec() const = 0;
  // Of the largest batch, all components aligned to ring::kTensorAlign.
  virtual uint64_t max_bytes() const = 0;
  // The components of which a GPU is to make what element_spec() says; in slots they lie as they were decoded.
  virtual std::span<const GpuImages> gpu_images() const { return {}; }
  // Of the largest batch in a GPU's slot, if there are such components; else 0.
  virtual uint64_t max_device_bytes() const { return 0; }
  // Whether next() may end before a last step that is not whole: such a step must be known before it is published.
  virtual bool holds_steps() const = 0;
  virtual int64_t cardinality() const = 0;
  virtual uint64_t run_seed() const = 0;    // of shuffles without a seed, unless a position brings another
  virtual uint64_t bytes_read() const = 0;  // from storage, so far; by any thread
  virtual uint64_t skipped_records() const { return 0; }  // that spec.onError has left out so far; by any thread
  // Of what makes deliveries: reads, shuffles, batches and cuts. Blocked on storage or a function, and on those who
  // decode. By any thread.
  virtual StageTimes read_times() const = 0;
  // Whether a worker that delivers some of the records has to read all: their places are not known, or it looks into
  // all of them. Called before Start; opens a file to see. Errors: of that.
  virtual Result<bool> ReadsAll() { return false; }
  // Ends what waits for storage, with Cancelled: the process is to end. Any thread.
  virtual void Stop() {}
  // Batches that lie ready before the trainer asks, by default.
  virtual int64_t default_prefetch_steps() const = 0;
};

// Steps made ahead of the trainers; 0: each is made when a trainer asks for it.
int64_t PrefetchSteps(const Feed& feed);

// Where the tensors of a batch without rows lie: zero in the first dimension, and zero for others that are not known.
// A component without dimensions keeps its one value, set to zero. The slot must hold what it takes.
void WriteEmpty(const std::vector<TensorSpec>& element_spec, uint8_t* slot,
                std::vector<ring::ComponentExtent>* extents);

// The end of a component that begins at `begin`, and so the begin of the next.
inline uint64_t AlignTensor(uint64_t end) {
  return (end + ring::kTensorAlign - 1) / ring::kTensorAlign * ring::kTensorAlign;
}

}  // namespace headrace::side
