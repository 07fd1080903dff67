// Where the loader's time goes, stage by stage: the thread that reads ahead, and the threads that decode.
#pragma once

#include <atomic>
#include <cstdint>

#include "common/ring/futex.h"
#include "sidecar/source/storage_wait.h"

namespace headrace::side {

// Since the loader started, in nanoseconds, summed over the stage's threads.
struct StageTimes {
  uint64_t busy_ns = 0;
  uint64_t blocked_on_input_ns = 0;
  uint64_t blocked_on_output_ns = 0;
};

// Counts them. Any thread.
class StageClock {
 public:
  // Clocks are read once a batch, or part of one, never once a record.
  void AddBusy(uint64_t ns) { busy_ns_.fetch_add(ns, std::memory_order_relaxed); }
  void AddBlockedOnInput(uint64_t ns) { blocked_on_input_ns_.fetch_add(ns, std::memory_order_relaxed); }
  void AddBlockedOnOutput(uint64_t ns) { blocked_on_output_ns_.fetch_add(ns, std::memory_order_relaxed); }

  StageTimes times() const {
    return {busy_ns_.load(std::memory_order_relaxed), blocked_on_input_ns_.load(std::memory_order_relaxed),
            blocked_on_output_ns_.load(std::memory_order_relaxed)};
  }

 private:
  std::atomic<uint64_t> busy_ns_{0};
  std::atomic<uint64_t> blocked_on_input_ns_{0};
  std::atomic<uint64_t> blocked_on_output_ns_{0};
};

// A piece of a stage's work, from its construction to its destruction, on one thread: blocked on input while it waited
// for storage, busy otherwise.
class StageWork {
 public:
  explicit StageWork(StageClock* clock)
      : clock_(*clock), storage_begin_ns_(StorageWait::OfThread()), begin_ns_(ring::MonotonicNs()) {}
  ~StageWork() {
    const uint64_t all_ns = ring::MonotonicNs() - begin_ns_;
    const uint64_t storage_ns = StorageWait::OfThread() - storage_begin_ns_;
    clock_.AddBusy(all_ns > storage_ns ? all_ns - storage_ns : 0);
    if (storage_ns > 0) clock_.AddBlockedOnInput(storage_ns);
  }
  StageWork(const StageWork&) = delete;
  StageWork& operator=(const StageWork&) = delete;

 private:
  StageClock& clock_;
  const uint64_t storage_begin_ns_;
  const uint64_t begin_ns_;
};

}  // namespace headrace::side
