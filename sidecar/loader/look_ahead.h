// Reads, shuffles, batches and cuts on a thread of its own, ahead of those who decode.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "sidecar/distribute/deal.h"
#include "sidecar/loader/signal.h"
#include "sidecar/loader/stage_times.h"

namespace headrace::side {

// All but the thread's own part is for one thread. Records are made and dropped by the look-ahead's thread alone, or
// after it has ended: their blocks are counted without atomics.
class LookAhead {
 public:
  // Keeps up to `depth` pieces whose records are in memory, and more of those whose records are not. Raises `signal`
  // whenever there is one more, and at the end; counts on `clock`. Both must outlive it.
  LookAhead(Deal deal, size_t depth, Signal* signal, StageClock* clock);
  ~LookAhead();
  LookAhead(const LookAhead&) = delete;
  LookAhead& operator=(const LookAhead&) = delete;

  // Whether piece `number` is there by now. Errors: why it never will be.
  enum class State { kThere, kEnd, kNotYet };
  Result<State> Look(uint64_t number) const;
  // REQUIRES: it is there, and not given back.
  const Dealt& piece(uint64_t number) const { return pieces_[number % pieces_.size()]; }
  // Gives back all pieces up to and with `number`.
  void Release(uint64_t number);

 private:
  void Run();
  // The deal's next piece. false: its end.
  Result<bool> Next(Dealt* piece);
  // false: to end.
  bool AwaitRoom(uint64_t number);
  // Whether pieces [from, until) are at most `most`, and those in memory among them at most `most_in_memory`.
  bool Few(uint64_t from, uint64_t until, uint64_t most, uint64_t most_in_memory) const;

  Deal deal_;
  const uint64_t depth_;
  std::vector<Dealt> pieces_;
  std::vector<uint64_t> in_memory_;  // by number, modulo its size: how many before it have their records in memory
  uint64_t dropped_ = 0;             // those before it that were given back hold no records any more
  Signal& signal_;
  StageClock& clock_;
  std::atomic<uint64_t> dealt_{0};
  std::atomic<uint64_t> released_{0};
  std::atomic<uint64_t> wanted_{0};  // of released_, by the thread that waits
  std::atomic<uint32_t> thread_waits_{0};
  std::atomic<bool> ended_{false};  // after which status_ is valid
  std::atomic<bool> stop_{false};
  Status status_;
  std::thread thread_;
};

}  // namespace headrace::side
