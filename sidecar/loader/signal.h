// Wakes a thread that waits for any of several things.
#pragma once

#include <atomic>
#include <cstdint>

#include "common/ring/futex.h"

namespace headrace::side {

// One thread waits: it asks Now(), looks at everything that it waits for, and if there is nothing, AwaitAfter what it
// was told. Any thread raises, after it has made something to be seen.
class Signal {
 public:
  uint64_t Now() const { return count_.load(std::memory_order_seq_cst); }
  // Returns once the signal was raised after that Now(), or after ring::kSleepSliceMs.
  void AwaitAfter(uint64_t seen) {
    for (int round = 0; round < ring::kSpinRounds; ++round) {
      if (Now() != seen) return;
      ring::CpuRelax();
    }
    waiting_.store(1, std::memory_order_seq_cst);
    if (Now() == seen) ring::FutexWait(count_, seen, ring::kSleepSliceMs);
    waiting_.store(0, std::memory_order_relaxed);
  }
  void Raise() {
    count_.fetch_add(1, std::memory_order_seq_cst);
    ring::WakeIfWaiting(waiting_, count_);
  }

 private:
  std::atomic<uint64_t> count_{0};
  std::atomic<uint32_t> waiting_{0};
};

}  // namespace headrace::side
