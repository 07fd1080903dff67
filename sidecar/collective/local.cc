#include "sidecar/collective/local.h"

#include <algorithm>
#include <chrono>

namespace headrace::side {
namespace {

constexpr auto kGiveUpInterval = std::chrono::milliseconds(50);

}  // namespace

bool Local::Announce(uint64_t epoch, int64_t steps, bool ended) {
  const uint64_t before = announced_epoch_;
  if (epoch < before) return false;
  if (epoch > before || (ended && !announced_end_)) {
    const std::lock_guard lock(mutex_);
    if (epoch > before) {
      position_.finals[before] = steps_.load(std::memory_order_relaxed);
      steps_.store(0, std::memory_order_relaxed);
      known_.erase(known_.begin(), known_.lower_bound(epoch));
    }
    steps_.store(std::max(steps, steps_.load(std::memory_order_relaxed)), std::memory_order_relaxed);
    position_.epoch = announced_epoch_ = epoch;
    position_.ended = announced_end_ = ended;
  } else if (steps > steps_.load(std::memory_order_relaxed)) {
    steps_.store(steps);
  } else {
    return false;
  }
  // In one total order with Watch and the position() after it: either we see the watch, or the network our steps.
  return before < watched_until_.load();
}

Result<bool> Local::AnyHasStep(uint64_t epoch, int64_t step, const std::function<bool()>& give_up,
                               const std::function<void()>& wake) {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (const auto found = known_.find(epoch); found != known_.end()) {
      if (found->second.steps > step) return true;
      if (found->second.closed) return false;
    }
    if (!failure_.ok()) return failure_;
    if (epoch >= blocked_from_) return Unavailable(blocked_why_);
    const uint64_t seen = changes_;
    const bool first = position_.waits_until < epoch + 1;
    position_.waits_until = std::max(position_.waits_until, epoch + 1);
    lock.unlock();
    if (first) wake();
    if (give_up()) return Cancelled("asked to stop while other workers still had data");
    lock.lock();
    changed_.wait_for(lock, kGiveUpInterval, [&] { return changes_ != seen; });
  }
}

Status Local::failure() const {
  if (!failed_.load(std::memory_order_relaxed)) return {};
  const std::lock_guard lock(mutex_);
  return failure_;
}

Local::Position Local::position() const {
  const std::lock_guard lock(mutex_);
  Position position = position_;
  position.steps = steps_.load();
  return position;
}

void Local::Watch(uint64_t until) {
  if (until > watched_until_.load(std::memory_order_relaxed)) watched_until_.store(until);
}

void Local::Forget(uint64_t floor) {
  const std::lock_guard lock(mutex_);
  position_.finals.erase(position_.finals.begin(), position_.finals.lower_bound(floor));
}

void Local::Learn(uint64_t epoch, const EpochKnowledge& knowledge) {
  const std::lock_guard lock(mutex_);
  if (epoch < position_.epoch) return;  // nobody will ask
  EpochKnowledge& known = known_[epoch];
  if (known.closed) return;
  known = {std::max(known.steps, knowledge.steps), knowledge.closed};
  Changed();
}

void Local::Block(uint64_t epoch, const std::string& why) {
  const std::lock_guard lock(mutex_);
  blocked_from_ = epoch;
  blocked_why_ = why;
  Changed();
}

void Local::Fail(const Status& why) {
  const std::lock_guard lock(mutex_);
  if (!failure_.ok()) return;
  failure_ = why;
  failed_ = true;
  Changed();
}

void Local::Changed() {
  ++changes_;
  changed_.notify_all();
}

}  // namespace headrace::side
