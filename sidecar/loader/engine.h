// The loader's one working thread: epoch after epoch, from the pipeline's batches to published slots.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/base/status.h"
#include "common/ring/writer.h"
#include "sidecar/distribute/deal.h"
#include "sidecar/loader/pipeline.h"

namespace headrace::side {

// What the engine has done, read by other threads for metrics.
struct ReplicaCounters {
  std::atomic<uint64_t> batches{0};
  std::atomic<uint64_t> records{0};
  std::atomic<uint64_t> bytes{0};
};

class Engine {
 public:
  // One ring for each replica of this worker, in order. Both must outlive the engine.
  Engine(Pipeline* pipeline, std::vector<std::unique_ptr<ring::RingWriter>>* rings);

  // Opens the rings of a worker in `run_dir`, or takes over what an earlier loader of the same run left.
  static Result<std::vector<std::unique_ptr<ring::RingWriter>>> OpenRings(const std::string& run_dir,
                                                                          const Pipeline& pipeline);

  // Runs until `stop` becomes true (ok) or the data set fails; then every ring has been told why.
  Status Run(const std::atomic<bool>& stop);

  const ReplicaCounters& counters(size_t replica) const { return counters_[replica]; }
  uint64_t epoch() const { return epoch_.load(std::memory_order_relaxed); }

 private:
  Status RunEpochs(const std::atomic<bool>& stop);
  Status RunEpoch(uint64_t epoch, const std::atomic<bool>& stop);
  Status Deliver(uint64_t epoch, const Delivery& delivery, const std::atomic<bool>& stop);
  uint64_t NewestWantedEpoch() const;

  Pipeline& pipeline_;
  std::vector<std::unique_ptr<ring::RingWriter>>& rings_;
  std::vector<ReplicaCounters> counters_;
  std::atomic<uint64_t> epoch_{0};
  std::vector<ring::ComponentExtent> extents_;
  std::vector<uint8_t*> columns_;
};

}  // namespace headrace::side
