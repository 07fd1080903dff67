// The loader at work: epoch after epoch, from what the feed delivers to published slots.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "common/base/status.h"
#include "common/ring/writer.h"
#include "sidecar/collective/agreement.h"
#include "sidecar/device/device_ring.h"
#include "sidecar/loader/feed.h"
#include "sidecar/loader/signal.h"
#include "sidecar/loader/work_pool.h"

namespace headrace::side {

// What the engine has done, read by other threads for metrics.
struct ReplicaCounters {
  std::atomic<uint64_t> batches{0};
  std::atomic<uint64_t> records{0};
  std::atomic<uint64_t> bytes{0};
};

class Engine {
 public:
  // One ring for each replica of this worker, in order. `pool` decodes, beside the thread that calls Run; `signal` is
  // the one that the feed raises. `agreement` with the other workers' loaders may be null: then each worker's epochs
  // end when its own data does. `device_rings`, if there are any, mirror the rings: a batch is published when it is in
  // both. All must outlive the engine.
  Engine(Feed* feed, std::vector<std::unique_ptr<ring::RingWriter>>* rings, const device::DeviceRings* device_rings,
         WorkPool* pool, Signal* signal, Agreement* agreement);

  // Opens the rings of a worker in `run_dir`, or takes over what an earlier loader of the same run left.
  static Result<std::vector<std::unique_ptr<ring::RingWriter>>> OpenRings(const std::string& run_dir, const Feed& feed);

  // Runs until `stop` becomes true (ok) or the data set fails; then every ring has been told why.
  Status Run(const std::atomic<bool>& stop);

  const ReplicaCounters& counters(size_t replica) const { return counters_[replica]; }
  // Of the decoding: busy on all threads; blocked while nothing is in work since the feed has no delivery, or a ring
  // has no room. By any thread.
  StageTimes decode_times() const;
  size_t decode_threads() const { return pool_.active(); }  // that take work now
  uint64_t epoch() const { return epoch_.load(std::memory_order_relaxed); }

 private:
  using Delivery = FeedEpoch::Delivery;

  // A delivery on its way from the feed to its ring.
  struct Work {
    Engine* engine = nullptr;
    FeedEpoch* epoch = nullptr;
    Delivery delivery;
    FeedEpoch::Place place;
    bool wanted = true;  // false: its replica has it already, or has moved on
    // To be written, each by RunPart; then 1 while the batch is on its way to a GPU.
    std::atomic<size_t> parts_left{0};
    std::mutex mutex;
    Status error;  // the first of its parts
  };

  Status RunEpochs(const std::atomic<bool>& stop);
  // From position_ to the end of its epoch, or until a client wants to be elsewhere.
  Status RunEpoch(const std::atomic<bool>& stop);
  Status DeliverAll(FeedEpoch& epoch, const std::atomic<bool>& stop);
  // Asks the feed for the next delivery, if it may be asked now. false: there is nothing new.
  Result<bool> AskFeed(FeedEpoch& epoch);
  // Finds a slot for asked_ and begins to write it. false: its ring is full.
  bool Begin(FeedEpoch& epoch);
  static void RunPart(void* context, size_t part, size_t thread);
  // Sends what is written to GPUs, if there are any, and publishes what is there, in order.
  Status PublishDone(FeedEpoch& epoch);
  // The device ring of a work's replica; null: there is none.
  device::DeviceRing* DeviceRingOf(const Work& work) const;
  static void EndSend(void* context, const Status& status);
  // Drops what is in work, and gives its slots back, once nobody writes or copies them.
  void AbandonWorks(const std::atomic<bool>& stop);
  void Publish(const Work& work);
  void Publish(size_t replica, ring::SlotDescriptor descriptor, const uint8_t* slot,
               std::span<const ring::ComponentExtent> extents);
  // Brings to its GPU, if it has one, what is not of the feed's making, and waits. Errors: Cancelled on stop.
  Status SendNow(size_t replica, const uint8_t* slot, std::span<ring::ComponentExtent> extents,
                 const std::atomic<bool>& stop);
  // Whether it must wait for the rest of its step to come from the feed: a step that may turn out not to be whole is
  // published once that is known.
  bool Held(const Work& work) const;
  // Whether all that is in work is written, and waits for that.
  bool AllHeld() const;
  // After this worker's own data: steps without rows for as long as any other worker has some. false: a client wants to
  // be elsewhere, or stop.
  Result<bool> EndTogether(const std::atomic<bool>& stop);
  Status PublishEmptyStep(const std::atomic<bool>& stop);
  // Waits until a trainer asks for the next step. false: stop, or position_ has moved.
  bool AwaitDemand(const std::atomic<bool>& stop);
  Status PublishEnd(const ring::Position& end, const std::atomic<bool>& stop);
  // Whether a client wants to be where the engine would not get by going on; then position_ is there.
  bool MoveToWanted();
  // Sleeps until there may be something to do: the signal has been raised since `seen`.
  void AwaitWork(uint64_t seen);
  // Takes more threads while a trainer waits, and gives them back by and by when none does.
  void AdaptThreads();

  Feed& feed_;
  std::vector<std::unique_ptr<ring::RingWriter>>& rings_;
  const device::DeviceRings& device_rings_;
  WorkPool& pool_;
  Signal& signal_;
  std::vector<ReplicaCounters> counters_;
  Agreement* const agreement_;
  std::map<uint64_t, uint64_t> ends_;  // epochs that ended together, and their steps: for a client that goes back
  const bool on_demand_;               // nothing is prefetched: a step is asked of the feed when a trainer asks for it
  std::atomic<uint64_t> epoch_{0};
  StageClock decode_clock_;  // but for the wait for rings, which they count
  ring::Position position_;  // of the next step

  // Of the epoch that runs.
  std::deque<std::unique_ptr<Work>> works_;  // in their order
  size_t ended_works_ = 0;                   // the first of them: written, and sent where they go to a GPU
  std::vector<std::unique_ptr<Work>> spare_works_;
  std::optional<Delivery> asked_;  // has no slot yet
  int64_t asked_step_ = 0;         // the first of which not all deliveries have come from the feed
  size_t published_of_step_ = 0;   // deliveries of position_.step
  int64_t partial_step_ = -1;      // the one that is not whole, if any
  bool feed_ended_ = false;
  Status feed_error_;  // after what is in work

  uint64_t adapted_ns_ = 0;
  uint64_t trainers_waited_ns_ = 0;
  uint64_t keep_threads_until_ns_ = 0;
};

}  // namespace headrace::side
