// Worker 0's part in an exchange: reads what all workers get, and packs each delivery as it travels.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "sidecar/collective/exchange.h"
#include "sidecar/loader/feed.h"
#include "sidecar/loader/signal.h"
#include "sidecar/loader/work_pool.h"

namespace headrace::side {

// A delivery as it travels: this, an extent for each component, and the slot's bytes from a multiple of
// ring::kTensorAlign on. The loaders of a run are of one build, so it is memory as it lies.
struct PackedDelivery {
  int64_t rows = 0;
  int64_t records = 0;
  uint64_t slot_bytes = 0;  // that are used
  uint64_t gpu_images = 0;  // components that lie there as they were decoded, for the GPU of who gets them

  static size_t HeadBytes(size_t components);
};

// A place in the deliveries that each worker gets: they are counted over steps and replicas.
struct SharePlace {
  uint64_t epoch = 0;
  uint64_t delivery = 0;
  uint64_t seed = 0;
  bool operator==(const SharePlace&) const = default;
};

// Used by one thread.
class ShareReader {
 public:
  // `feed` was made with `signal`, for `threads` that decode. Each worker has `replicas`. All get the same if `workers`
  // is 1; else `feed` is that of one worker with the replicas of all, and delivery d of a step is worker d mod
  // workers's.
  ShareReader(std::unique_ptr<Feed> feed, std::unique_ptr<Signal> signal, size_t threads, int64_t workers,
              int64_t replicas);
  ~ShareReader();

  // Packs what the workers get at `at`, part w for worker w, and sets the parts' bytes to what they took; going on from
  // the last place costs no seek. false: the epoch is over there. REQUIRES: each part has room for the head and the
  // feed's max_bytes(). Errors: the feed's; Cancelled after Stop.
  Result<bool> Read(const SharePlace& at, std::span<Exchange::Part> parts);

  // Any thread.
  void Stop();
  const Feed& feed() const { return *feed_; }

 private:
  Result<bool> Next(FeedEpoch::Delivery* delivery);
  Status Pack(FeedEpoch::Delivery delivery, Exchange::Part* part);
  static void RunPart(void* context, size_t part, size_t thread);

  const std::unique_ptr<Signal> signal_;
  const std::unique_ptr<Feed> feed_;
  const uint64_t workers_;
  const uint64_t replicas_;
  std::atomic<bool> stop_{false};
  SharePlace next_;
  std::unique_ptr<FeedEpoch> epoch_;  // in which next_ is; null before the first

  // The delivery that is packed.
  const FeedEpoch::Delivery* packing_ = nullptr;
  FeedEpoch::Place place_;
  std::vector<Status> written_;  // by part
  std::atomic<size_t> parts_left_{0};

  WorkPool pool_;  // ends first: its threads write
};

}  // namespace headrace::side
