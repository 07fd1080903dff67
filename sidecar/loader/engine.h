// The loader's one working thread: epoch after epoch, from what the feed delivers to published slots.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "common/base/status.h"
#include "common/ring/writer.h"
#include "sidecar/collective/agreement.h"
#include "sidecar/loader/feed.h"

namespace headrace::side {

// What the engine has done, read by other threads for metrics.
struct ReplicaCounters {
  std::atomic<uint64_t> batches{0};
  std::atomic<uint64_t> records{0};
  std::atomic<uint64_t> bytes{0};
};

class Engine {
 public:
  // One ring for each replica of this worker, in order. `agreement` with the other workers' loaders may be null: then
  // each worker's epochs end when its own data does. All must outlive the engine.
  Engine(Feed* feed, std::vector<std::unique_ptr<ring::RingWriter>>* rings, Agreement* agreement);

  // Opens the rings of a worker in `run_dir`, or takes over what an earlier loader of the same run left.
  static Result<std::vector<std::unique_ptr<ring::RingWriter>>> OpenRings(const std::string& run_dir, const Feed& feed);

  // Runs until `stop` becomes true (ok) or the data set fails; then every ring has been told why.
  Status Run(const std::atomic<bool>& stop);

  const ReplicaCounters& counters(size_t replica) const { return counters_[replica]; }
  uint64_t epoch() const { return epoch_.load(std::memory_order_relaxed); }

 private:
  using Delivery = FeedEpoch::Delivery;

  Status RunEpochs(const std::atomic<bool>& stop);
  // From position_ to the end of its epoch, or until a client wants to be elsewhere.
  Status RunEpoch(const std::atomic<bool>& stop);
  Status Deliver(FeedEpoch& epoch, const Delivery& delivery, const std::atomic<bool>& stop);
  // After this worker's own data: steps without rows for as long as any other worker has some. false: a client wants to
  // be elsewhere, or stop.
  Result<bool> EndTogether(const std::atomic<bool>& stop);
  // Waits until a trainer asks for the next step. false: stop, or position_ has moved.
  bool AwaitDemand(const std::atomic<bool>& stop);
  // Publishes what was written and waits.
  void PublishWritten(uint32_t flags);
  Status PublishEnd(const ring::Position& end, const std::atomic<bool>& stop);
  // Whether a client wants to be where the engine would not get by going on; then position_ is there.
  bool MoveToWanted();

  Feed& feed_;
  std::vector<std::unique_ptr<ring::RingWriter>>& rings_;
  std::vector<ReplicaCounters> counters_;
  Agreement* const agreement_;
  std::map<uint64_t, uint64_t> ends_;  // epochs that ended together, and their steps: for a client that goes back
  const bool on_demand_;               // nothing is prefetched: a step is asked of the feed when a trainer asks for it
  std::atomic<uint64_t> epoch_{0};
  ring::Position position_;  // of the next step

  // A batch written to a reserved slot and not yet published, for each replica.
  struct Written {
    bool waits = false;
    Delivery delivery;
    std::vector<ring::ComponentExtent> extents;
  };
  std::vector<Written> written_;
};

}  // namespace headrace::side
