#include "sidecar/loader/look_ahead.h"

#include <algorithm>

#include "common/ring/futex.h"

namespace headrace::side {
namespace {

// Pieces without their records are small: what is far ahead keeps the thread from waking up often.
constexpr size_t kMostPieces = 64;

bool InMemory(const Piece& piece) {
  const auto holds = [](const Record& record) { return record.block && record.block->holds_records(); };
  return !piece.records.empty() && (holds(piece.records.front()) || holds(piece.records.back()));
}

}  // namespace

LookAhead::LookAhead(Deal deal, size_t depth, Signal* signal, StageClock* clock)
    : deal_(std::move(deal)),
      depth_(depth),
      pieces_(std::max(depth, std::min(4 * depth, kMostPieces))),
      in_memory_(pieces_.size() + 1),
      signal_(*signal),
      clock_(*clock),
      thread_([this] { Run(); }) {}

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
    // Their blocks are used again while they are in the processors' caches.
    for (; dropped_ < released_.load(std::memory_order_acquire); ++dropped_) {
      PointAtRows(pieces_[dropped_ % pieces_.size()].piece.records, {}, 0);
    }
    const Result<bool> more = Next(&pieces_[number % pieces_.size()]);
    if (!more.ok() || !*more) {
      status_ = more.status();
      ended_.store(true, std::memory_order_release);
      signal_.Raise();
      return;
    }
    const uint64_t before = in_memory_[number % in_memory_.size()];
    in_memory_[(number + 1) % in_memory_.size()] = before + (InMemory(pieces_[number % pieces_.size()].piece) ? 1 : 0);
    dealt_.store(number + 1, std::memory_order_release);
    signal_.Raise();
  }
}

Result<bool> LookAhead::Next(Dealt* piece) {
  const StageWork work(&clock_);
  return deal_.Next(piece);
}

bool LookAhead::Few(uint64_t from, uint64_t until, uint64_t most, uint64_t most_in_memory) const {
  const uint64_t in_memory = in_memory_[until % in_memory_.size()] - in_memory_[from % in_memory_.size()];
  return until - from <= most && in_memory <= most_in_memory;
}

bool LookAhead::AwaitRoom(uint64_t number) {
  const uint64_t pieces = pieces_.size();
  uint64_t wanted = released_.load(std::memory_order_seq_cst);
  if (Few(wanted, number, pieces - 1, depth_ - 1)) return !stop_.load(std::memory_order_seq_cst);
  // Once there is no room it sleeps until half of it is free: waking up costs more than a small piece.
  while (!Few(wanted, number, pieces / 2, depth_ / 2)) ++wanted;
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
