#include "client/prefetch.h"

#include <signal.h>

#include <algorithm>
#include <chrono>

#include "common/ring/futex.h"

namespace headrace::client {
namespace {

constexpr int kSliceMs = 20;  // between two looks at stop_, while the ring is empty

}  // namespace

Prefetch::Prefetch(DeviceBuffers* buffers, Ring ring, Ahead ahead)
    : buffers_(*buffers), ring_(std::move(ring)), ahead_(ahead) {
  // Signals are for the trainer's own threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { Run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Prefetch::~Prefetch() {
  stop_ = true;
  { const std::lock_guard lock(mutex_); }
  arrived_.notify_all();
  buffers_.Wake();
  thread_.join();
  for (const Arrival& arrival : ready_) {
    if (arrival.has_slot && IsLastHolder(arrival.slot_holders)) ring_.release(arrival.view);
    buffers_.GiveBack(arrival.buffer, {});
  }
}

void Prefetch::Run() {
  Result<Outcome> outcome = RunEpoch();
  // The GPU reads these slots until the copies are done, whatever else has gone wrong.
  while (!copies_.empty()) {
    const Status finished = FinishOldest();
    if (outcome.ok() && !finished.ok()) outcome = finished;
  }
  if (spare_ != nullptr) buffers_.GiveBack(spare_, {});
  spare_ = nullptr;
  const std::lock_guard lock(mutex_);
  error_ = outcome.status();
  over_ = true;
  arrived_.notify_all();
}

Result<Prefetch::Outcome> Prefetch::RunEpoch() {
  while (!stop_) {
    if (spare_ == nullptr) {
      ASSIGN_OR_RETURN(spare_, buffers_.TryTake());
    }
    if (spare_ != nullptr && MayAsk()) {
      ring::SlotView view;
      // What is under way comes before sleeping.
      ASSIGN_OR_RETURN(const Outcome outcome, ring_.next(copies_.empty() ? kSliceMs : 0, &view));
      if (outcome == Outcome::kEndOfEpoch) return outcome;
      if (outcome == Outcome::kBatch) {
        DeviceBuffers::Buffer* const buffer = spare_;
        spare_ = nullptr;
        RETURN_IF_ERROR(Send(buffer, view));
        continue;
      }
    }
    if (!copies_.empty()) {
      RETURN_IF_ERROR(FinishOldest());
    } else if (spare_ == nullptr) {
      AwaitBuffer();
    }
  }
  return Outcome::kTimeout;
}

bool Prefetch::MayAsk() {
  if (ahead_ == Ahead::kAsBuffersAllow) return true;
  std::unique_lock lock(mutex_);
  const auto asked = [this] { return stop_ || (asked_ && ready_.empty()); };
  if (copies_.empty()) arrived_.wait(lock, asked);
  return asked();
}

Status Prefetch::Send(DeviceBuffers::Buffer* buffer, const ring::SlotView& view) {
  Arrival arrival;
  arrival.view = view;
  arrival.buffer = buffer;
  arrival.extents.assign(view.extents.begin(), view.extents.end());
  arrival.view.extents = arrival.extents;
  arrival.has_slot = !std::all_of(arrival.extents.begin(), arrival.extents.end(), ring::GoesToDevice);
  if (arrival.has_slot) {
    arrival.slot_holders = std::make_shared<std::atomic<int>>(2);
  } else {
    arrival.view.data = nullptr;
  }
  const Status filled = buffers_.Fill(*buffer, view.data, ring::DeviceRanges(view.extents));
  if (!filled.ok()) {
    buffers_.AwaitFills();
    ring_.release(view);
    buffers_.GiveBack(buffer, {});
    return filled;
  }
  copies_.push_back({buffer, view, arrival.slot_holders});
  {
    const std::lock_guard lock(mutex_);
    ready_.push_back(std::move(arrival));
    asked_ = false;
  }
  arrived_.notify_all();
  return {};
}

Status Prefetch::FinishOldest() {
  const Copy copy = copies_.front();
  copies_.pop_front();
  const Status copied = buffers_.AwaitFilled(*copy.buffer);
  if (IsLastHolder(copy.slot_holders)) ring_.release(copy.view);
  return copied;
}

void Prefetch::AwaitBuffer() {
  const auto say = [this](bool starved) {
    {
      const std::lock_guard lock(mutex_);
      starved_ = starved;
    }
    arrived_.notify_all();
  };
  say(true);
  buffers_.AwaitFree(stop_);
  say(false);
}

bool Prefetch::failed() {
  const std::lock_guard lock(mutex_);
  return over_ && !error_.ok();
}

Result<Prefetch::Outcome> Prefetch::Next(int64_t timeout_ms, Arrival* arrival) {
  const auto start = std::chrono::steady_clock::now();
  const auto deadline = start + std::chrono::milliseconds(std::min<int64_t>(timeout_ms, INT32_MAX));
  std::unique_lock lock(mutex_);
  while (true) {
    if (!ready_.empty()) {
      *arrival = std::move(ready_.front());
      ready_.pop_front();
      held_since_ns_ = 0;
      return Outcome::kBatch;
    }
    if (over_) {
      RETURN_IF_ERROR(error_);
      return Outcome::kEndOfEpoch;
    }
    if (!asked_) {
      asked_ = true;
      arrived_.notify_all();
    }
    const uint64_t now_ns = ring::MonotonicNs();
    // What was given back a moment ago, the thread has yet to find.
    const bool all_held = starved_ && !buffers_.HasFree();
    if (!all_held) held_since_ns_ = 0;
    if (all_held && held_since_ns_ == 0) held_since_ns_ = now_ns;
    auto until = timeout_ms < 0 ? std::chrono::steady_clock::time_point::max() : deadline;
    if (all_held) {
      const uint64_t grace_ns = uint64_t{ring::RingReader::kHeldGraceMs} * 1000000u;
      const uint64_t held_ns = now_ns - held_since_ns_;
      if (held_ns >= grace_ns) {
        return Exhausted("all " + std::to_string(buffers_.count()) +
                         " batches that GPU memory is there for are held by the trainer: release batches (in Python: "
                         "drop the tensors that look into them, or copy them), or connect with more device_batches");
      }
      until = std::min(until, std::chrono::steady_clock::now() + std::chrono::nanoseconds(grace_ns - held_ns));
    }
    if (timeout_ms >= 0 && std::chrono::steady_clock::now() >= deadline) return Outcome::kTimeout;
    const bool was_starved = starved_;
    const auto changed = [&] { return !ready_.empty() || over_ || starved_ != was_starved; };
    if (until == std::chrono::steady_clock::time_point::max()) {
      arrived_.wait(lock, changed);
    } else {
      arrived_.wait_until(lock, until, changed);
    }
  }
}

}  // namespace headrace::client
