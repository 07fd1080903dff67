#include "operator/kube/work_queue.h"

#include <algorithm>

namespace headrace::kube {
namespace {

double SecondsBetween(WorkQueue::TimePoint from, WorkQueue::TimePoint to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

WorkQueue::WorkQueue(Options options) : options_(std::move(options)) {}

void WorkQueue::Add(const std::string& key) {
  const std::lock_guard lock(mutex_);
  AddLocked(key);
}

void WorkQueue::AddLocked(const std::string& key) {
  if (shut_down_ || !dirty_.emplace(key, options_.now()).second) return;
  if (options_.on_add) options_.on_add();
  if (processing_.contains(key)) return;  // Done brings it back
  ready_.push_back(key);
  changed_.notify_one();
}

void WorkQueue::AddAfter(const std::string& key, Duration delay) {
  const std::lock_guard lock(mutex_);
  DelayLocked(key, delay);
}

void WorkQueue::DelayLocked(const std::string& key, Duration delay) {
  if (shut_down_) return;
  if (delay <= Duration::zero()) return AddLocked(key);
  const TimePoint at = options_.now() + delay;
  const auto it = due_.find(key);
  if (it != due_.end()) {
    if (it->second <= at) return;
    const auto [first, last] = by_due_.equal_range(it->second);
    by_due_.erase(std::find_if(first, last, [&](const auto& entry) { return entry.second == key; }));
  }
  due_[key] = at;
  by_due_.emplace(at, key);
  changed_.notify_one();  // whoever sleeps until a later time sleeps shorter
}

void WorkQueue::AddRateLimited(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const int failures = failures_[key]++;
  Duration delay = options_.base_delay;
  for (int i = 0; i < failures && delay < options_.max_delay; ++i) delay *= 2;
  if (options_.on_retry) options_.on_retry();
  DelayLocked(key, std::min(delay, options_.max_delay));
}

void WorkQueue::Forget(const std::string& key) {
  const std::lock_guard lock(mutex_);
  failures_.erase(key);
}

int WorkQueue::Failures(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto it = failures_.find(key);
  return it == failures_.end() ? 0 : it->second;
}

void WorkQueue::PromoteDue() {
  const TimePoint now = options_.now();
  while (!by_due_.empty() && by_due_.begin()->first <= now) {
    const std::string key = std::move(by_due_.begin()->second);
    by_due_.erase(by_due_.begin());
    due_.erase(key);
    AddLocked(key);
  }
}

std::optional<std::string> WorkQueue::TakeLocked() {
  PromoteDue();
  if (shut_down_ || ready_.empty()) return std::nullopt;
  std::string key = std::move(ready_.front());
  ready_.pop_front();
  const TimePoint now = options_.now();
  const auto since = dirty_.find(key);
  if (options_.on_get) options_.on_get(SecondsBetween(since->second, now));
  dirty_.erase(since);
  processing_[key] = now;
  return key;
}

std::optional<std::string> WorkQueue::TryGet() {
  const std::lock_guard lock(mutex_);
  return TakeLocked();
}

std::optional<std::string> WorkQueue::Get() {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (shut_down_) return std::nullopt;
    if (auto key = TakeLocked()) return key;
    if (by_due_.empty()) {
      changed_.wait(lock);
    } else {
      changed_.wait_for(lock, by_due_.begin()->first - options_.now());
    }
  }
}

void WorkQueue::Done(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto it = processing_.find(key);
  if (it == processing_.end()) return;
  if (options_.on_done) options_.on_done(SecondsBetween(it->second, options_.now()));
  processing_.erase(it);
  if (shut_down_ || !dirty_.contains(key)) return;
  ready_.push_back(key);
  changed_.notify_one();
}

void WorkQueue::ShutDown() {
  const std::lock_guard lock(mutex_);
  shut_down_ = true;
  ready_.clear();
  dirty_.clear();
  due_.clear();
  by_due_.clear();
  changed_.notify_all();
}

WorkQueue::Stats WorkQueue::GetStats() const {
  const std::lock_guard lock(mutex_);
  Stats stats;
  stats.depth = ready_.size();
  const TimePoint now = options_.now();
  for (const auto& [key, since] : processing_) {
    const double seconds = SecondsBetween(since, now);
    stats.unfinished_seconds += seconds;
    stats.longest_seconds = std::max(stats.longest_seconds, seconds);
  }
  return stats;
}

}  // namespace headrace::kube
