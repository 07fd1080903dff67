// A feed whose data is read by worker 0 alone and handed to the other workers' loaders by an exchange, beside the
// agreement: all get the same (policy Off), or each its own (Data). While there is no exchange, or none any more, each
// worker reads by itself, from the delivery on that it lacks: order is arithmetic, so no trainer sees a difference.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "sidecar/collective/agreement.h"
#include "sidecar/collective/exchange.h"
#include "sidecar/loader/share_reader.h"

namespace headrace::side {

struct SharedFeedOptions {
  std::unique_ptr<Feed> own;            // what this worker reads alone, made with `signal`
  Signal* signal = nullptr;             // the engine's
  std::unique_ptr<ShareReader> reader;  // of worker 0; else null
  bool scatters = false;                // each worker gets its own; else all the same
  bool falls_back = true;               // to reading alone; else the input fails
  Agreement* agreement = nullptr;       // outlives the feed
  // Called once, on the feed's thread.
  std::function<Result<std::unique_ptr<Exchange>>()> open;
};

class SharedFeed : public Feed {
 public:
  explicit SharedFeed(SharedFeedOptions options);
  // Ends the exchange, for all.
  ~SharedFeed() override;

  Result<std::unique_ptr<FeedEpoch>> Start(const ring::Position& start) override;

  const Plan& plan() const override { return own_.plan(); }
  const Topology& topology() const override { return own_.topology(); }
  const std::vector<TensorSpec>& element_spec() const override { return own_.element_spec(); }
  uint64_t max_bytes() const override { return own_.max_bytes(); }
  std::span<const GpuImages> gpu_images() const override { return own_.gpu_images(); }
  uint64_t max_device_bytes() const override { return own_.max_device_bytes(); }
  bool holds_steps() const override { return own_.holds_steps(); }
  int64_t cardinality() const override { return own_.cardinality(); }
  uint64_t run_seed() const override { return own_.run_seed(); }
  uint64_t bytes_read() const override;
  uint64_t skipped_records() const override;
  StageTimes read_times() const override;
  int64_t default_prefetch_steps() const override { return own_.default_prefetch_steps(); }
  void Stop() override;

 private:
  class Epoch;
  // What has come, until it is in its slot.
  struct Buffer {
    std::vector<Exchange::Part> parts;  // the first is this worker's; worker 0 has the others' beside it
    bool taken = false;
    FeedEpoch::Delivery delivery;
  };
  // What the engine's epoch wants next.
  struct Want {
    SharePlace place;
    uint64_t number = 0;  // of the wants: a delivery that comes for an earlier epoch of the engine is not this one's
  };

  // The feed's thread.
  void Run();
  Status RunExchange();
  Status Join();
  Status Allocate();
  // A free buffer and what it is for, once both are there.
  Status AwaitRoom(Want* want, size_t* buffer);
  // One round, at worker 0 and at the others.
  Status Give(uint64_t round, const Want& want, size_t buffer);
  Status Take(uint64_t round, const Want& want, size_t buffer);
  Status Arrive(const Want& want, const SharePlace& place, bool ended, size_t buffer);
  std::function<bool()> GiveUp() const;

  const SharedFeedOptions options_;
  Feed& own_;
  Rounds& rounds_;
  const int64_t worker_;
  const int64_t workers_;
  const uint64_t replicas_;

  std::atomic<bool> stop_{false};
  std::unique_ptr<Exchange> exchange_;  // the thread's; kept to the end, since the buffers are its memory
  std::vector<Buffer> buffers_;         // fixed once allocated; `taken` is guarded by mutex_

  std::mutex mutex_;
  std::condition_variable changed_;
  Want want_;
  bool wanted_ = false;         // an epoch of the engine wants more
  bool ended_ = false;          // ... has no more
  std::deque<size_t> arrived_;  // buffers, in order
  bool alone_ = false;          // there is no exchange any more
  Status failure_;

  std::thread thread_;
};

}  // namespace headrace::side
