// Brings the batches of one iterator onto a GPU, ahead of the trainer, on a thread of its own.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "client/arrival.h"

namespace headrace::client {

// The thread takes a batch from the ring, enqueues its copy, and hands it to the trainer's thread at once: whoever uses
// it waits on the GPU, by the buffer's event. The slot goes back when the copy is done, for which the thread sleeps
// while it has nothing to enqueue. (A host function on the stream could give it back, too, but holds the stream until
// it has run.)
class Prefetch {
 public:
  using Outcome = ring::RingReader::Outcome;
  struct Ring {
    // As RingReader::Next; by the prefetch thread alone, and no more after an end or an error.
    std::function<Result<Outcome>(int timeout_ms, ring::SlotView* view)> next;
    std::function<void(const ring::SlotView& view)> release;
  };
  // kOnDemand: a batch is taken from the ring when the trainer waits for it, and no sooner.
  enum class Ahead { kAsBuffersAllow, kOnDemand };

  // `buffers` must outlive this.
  Prefetch(DeviceBuffers* buffers, Ring ring, Ahead ahead);
  // Ends the thread. What the trainer has not taken is given back unread.
  ~Prefetch();
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  // The next batch, in order; it may be still on its way to the GPU. As RingReader::Next, of one thread at a time.
  // Errors: those of `next` and of the driver, after which there are no more batches (failed()); Exhausted if the
  // trainer has held all buffers for RingReader::kHeldGraceMs.
  Result<Outcome> Next(int64_t timeout_ms, Arrival* arrival);
  bool failed();

 private:
  // A copy under way, from a slot that goes back no sooner than when it is done.
  struct Copy {
    DeviceBuffers::Buffer* buffer;
    ring::SlotView view;
    std::shared_ptr<std::atomic<int>> slot_holders;  // as Arrival's
  };

  void Run();
  // From the first batch to the end of the epoch, an error, or stop_.
  Result<Outcome> RunEpoch();
  Status Send(DeviceBuffers::Buffer* buffer, const ring::SlotView& view);
  // Waits for the oldest copy and lets go of its slot.
  Status FinishOldest();
  // Sleeps until the trainer gives a buffer back; says meanwhile that there is none.
  void AwaitBuffer();
  bool MayAsk();

  DeviceBuffers& buffers_;
  const Ring ring_;
  const Ahead ahead_;
  std::atomic<bool> stop_{false};

  // Of the prefetch thread.
  DeviceBuffers::Buffer* spare_ = nullptr;  // taken, and not filled yet
  std::deque<Copy> copies_;

  std::mutex mutex_;
  std::condition_variable arrived_;  // or starved_, over_, or asked_ have changed
  // Guarded by mutex_.
  std::deque<Arrival> ready_;
  bool starved_ = false;  // all buffers are with the trainer
  bool asked_ = false;    // the trainer wants a batch and there is none
  bool over_ = false;     // the thread has ended: the epoch has, or with error_
  Status error_;

  uint64_t held_since_ns_ = 0;  // of the trainer's thread: when it first waited while starved_
  std::thread thread_;
};

}  // namespace headrace::client
