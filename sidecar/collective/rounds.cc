#include "sidecar/collective/rounds.h"

#include <algorithm>
#include <chrono>

namespace headrace::side {
namespace {

constexpr auto kGiveUpInterval = std::chrono::milliseconds(50);

}  // namespace

Rounds::Rounds(int64_t num_workers, std::function<void()> wake)
    : wake_(std::move(wake)), ready_(static_cast<size_t>(num_workers - 1)), go_(static_cast<size_t>(num_workers - 1)) {}

Result<std::vector<wire::Ready>> Rounds::AwaitAll(uint64_t round, const std::function<bool()>& give_up) {
  const auto is_ready = [round](const std::optional<wire::Ready>& ready) { return ready && ready->round == round; };
  std::unique_lock lock(mutex_);
  while (!ended_ && !std::all_of(ready_.begin(), ready_.end(), is_ready)) {
    lock.unlock();
    if (give_up()) return Cancelled("asked to stop while other workers were not ready");
    lock.lock();
    changed_.wait_for(lock, kGiveUpInterval);
  }
  if (ended_) return why_;
  std::vector<wire::Ready> all;
  for (const std::optional<wire::Ready>& ready : ready_) all.push_back(*ready);
  return all;
}

void Rounds::SayGo(std::vector<wire::Go> go) {
  {
    const std::lock_guard lock(mutex_);
    begun_ = true;
    for (size_t i = 0; i < go.size(); ++i) go_[i] = std::move(go[i]);
  }
  wake_();
}

Result<wire::Go> Rounds::AwaitGo(const wire::Ready& ready, const std::function<bool()>& give_up) {
  std::unique_lock lock(mutex_);
  ready_[0] = ready;
  lock.unlock();
  wake_();
  lock.lock();
  while (!ended_ && !(go_[0] && go_[0]->round == ready.round)) {
    lock.unlock();
    if (give_up()) return Cancelled("asked to stop while waiting for other workers");
    lock.lock();
    changed_.wait_for(lock, kGiveUpInterval);
  }
  if (ended_) return why_;
  begun_ = true;
  return *go_[0];
}

void Rounds::End(const Status& why) {
  {
    const std::lock_guard lock(mutex_);
    EndLocked(why);
  }
  wake_();
}

void Rounds::EndLocked(const Status& why) {
  if (ended_) return;
  why_ = why;
  ended_ = true;
  changed_.notify_all();
}

void Rounds::Hear(int64_t worker, const wire::Ready& ready) {
  const std::lock_guard lock(mutex_);
  ready_[static_cast<size_t>(worker - 1)] = ready;
  changed_.notify_all();
}

std::optional<wire::Go> Rounds::GoOf(int64_t worker) const {
  const std::lock_guard lock(mutex_);
  return go_[static_cast<size_t>(worker - 1)];
}

void Rounds::Hear(const wire::Go& go) {
  const std::lock_guard lock(mutex_);
  go_[0] = go;
  changed_.notify_all();
}

std::optional<wire::Ready> Rounds::ready() const {
  const std::lock_guard lock(mutex_);
  return ready_[0];
}

void Rounds::Lose(int64_t worker, const Status& why) {
  const std::lock_guard lock(mutex_);
  if (begun_) return EndLocked(why);
  if (worker > 0) ready_[static_cast<size_t>(worker - 1)].reset();
}

Status Rounds::why_ended() const {
  const std::lock_guard lock(mutex_);
  return why_;
}

}  // namespace headrace::side
