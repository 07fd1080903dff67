#include "sidecar/loader/look_ahead.h"

#include "common/ring/futex.h"

namespace headrace::side {

LookAhead::LookAhead(Deal deal, size_t depth, Signal* signal, StageClock* clock)
    : deal_(std::move(deal)), pieces_(depth), signal_(*signal), clock_(*clock), thread_([this] { Run(); }) {}

LookAhead::~LookAhead() {
  stop_.store(true, std::memory_order_seq_cst);
  ring::WakeIfWaiting(thread_waits_, released_);
  thread_.join();
}

Result<LookAhead::State> LookAhead::Look(uint64_t number) const {
  const bool ended = ended_.load(std::memory_order_acquire);
  if (number < dealt_.load(std::memory_order_acquire)) return State::kThere;
  if (!ended) return State::kNotYet;
  RETURN_IF_ERROR(status_);
  return State::kEnd;
}

void LookAhead::Release(uint64_t number) {
  released_.store(number + 1, std::memory_order_seq_cst);
  if (number + 1 >= wanted_.load(std::memory_order_seq_cst)) ring::WakeIfWaiting(thread_waits_, released_);
}

void LookAhead::Run() {
  for (uint64_t number = 0; AwaitRoom(number); ++number) {
    const Result<bool> more = Next(&pieces_[number % pieces_.size()]);
    if (!more.ok() || !*more) {
      status_ = more.status();
      ended_.store(true, std::memory_order_release);
      signal_.Raise();
      return;
    }
    dealt_.store(number + 1, std::memory_order_release);
    signal_.Raise();
  }
}

Result<bool> LookAhead::Next(Dealt* piece) {
  const StageWork work(&clock_);
  return deal_.Next(piece);
}

bool LookAhead::AwaitRoom(uint64_t number) {
  const uint64_t depth = pieces_.size();
  if (number - released_.load(std::memory_order_seq_cst) < depth) return !stop_.load(std::memory_order_seq_cst);
  // Once there is no room it sleeps until half of it is free: waking up costs more than a small piece.
  const uint64_t wanted = number - depth / 2;
  wanted_.store(wanted, std::memory_order_seq_cst);
  while (!stop_.load(std::memory_order_seq_cst)) {
    const uint64_t start = ring::MonotonicNs();
    thread_waits_.store(1, std::memory_order_seq_cst);
    const uint64_t released = released_.load(std::memory_order_seq_cst);
    if (released >= wanted) return true;
    if (!stop_.load(std::memory_order_seq_cst)) ring::FutexWait(released_, released, ring::kSleepSliceMs);
    clock_.AddBlockedOnOutput(ring::MonotonicNs() - start);
  }
  return false;
}

}  // namespace headrace::side
