#include "operator/kube/work_queue.h"

#include <algorithm>

namespace headrace::kube {
namespace {

double SecondsBetween(WorkQueue::TimePoint from, WorkQueue::TimePoint to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

WorkQueue::WorkQueue(Options options) : options_(std::move(options)) {}

void WorkQueue::Add(const std::string& key, Priority priority) {
  const std::lock_guard lock(mutex_);
  AddLocked(key, priority);
}

void WorkQueue::AddLocked(const std::string& key, Priority priority) {
  if (shut_down_) return;
  if (const auto rests = RestsUntil(key); rests && priority == Priority::kNews) return WaitUntil(key, *rests, priority);
  const auto [entry, added] = dirty_.try_emplace(key, Dirty{options_.now(), priority});
  Dirty& dirty = entry->second;
  if (!added && dirty.priority <= priority) return;
  if (added && options_.on_add) options_.on_add();
  if (dirty.ticket != 0) ready_.erase({dirty.priority, dirty.ticket});
  dirty.priority = priority;
  if (!processing_.contains(key)) LineUp(key, dirty);  // else Done brings it back
}

void WorkQueue::LineUp(const std::string& key, Dirty& dirty) {
  dirty.ticket = ++last_ticket_;
  ready_.emplace(std::pair(dirty.priority, dirty.ticket), key);
  changed_.notify_one();
}

void WorkQueue::AddAfter(const std::string& key, Duration delay) {
  const std::lock_guard lock(mutex_);
  DelayLocked(key, delay);
}

void WorkQueue::DelayLocked(const std::string& key, Duration delay) {
  if (shut_down_) return;
  const auto worked_on = processing_.find(key);
  const Priority priority = worked_on == processing_.end() ? Priority::kNews : worked_on->second.priority;
  if (delay <= Duration::zero()) return AddLocked(key, priority);
  WaitUntil(key, options_.now() + delay, priority);
}

void WorkQueue::WaitUntil(const std::string& key, TimePoint at, Priority priority) {
  const auto it = due_.find(key);
  if (it != due_.end()) {
    if (it->second.at <= at) return;
    const auto [first, last] = by_due_.equal_range(it->second.at);
    by_due_.erase(std::find_if(first, last, [&](const auto& entry) { return entry.second == key; }));
  }
  due_[key] = {at, priority};
  by_due_.emplace(at, key);
  changed_.notify_one();  // whoever sleeps until a later time sleeps shorter
}

std::optional<WorkQueue::TimePoint> WorkQueue::RestsUntil(const std::string& key) {
  const TimePoint now = options_.now();
  for (; !by_rest_.empty() && by_rest_.begin()->first <= now; by_rest_.erase(by_rest_.begin())) {
    const auto rested = resting_.find(by_rest_.begin()->second);
    if (rested != resting_.end() && rested->second <= now) resting_.erase(rested);
  }
  const auto it = resting_.find(key);
  return it == resting_.end() ? std::nullopt : std::optional(it->second);
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
    const Priority priority = due_.at(key).priority;
    due_.erase(key);
    AddLocked(key, priority);
  }
}

std::optional<std::string> WorkQueue::TakeLocked() {
  PromoteDue();
  if (shut_down_ || ready_.empty()) return std::nullopt;
  std::string key = std::move(ready_.begin()->second);
  ready_.erase(ready_.begin());
  const TimePoint now = options_.now();
  const auto dirty = dirty_.find(key);
  if (options_.on_get) options_.on_get(SecondsBetween(dirty->second.since, now));
  processing_[key] = {now, dirty->second.priority};
  dirty_.erase(dirty);
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
  const TimePoint now = options_.now();
  const auto worked = now - it->second.since;
  if (options_.on_done) options_.on_done(SecondsBetween(it->second.since, now));
  processing_.erase(it);
  if (worked > worked.zero()) {
    const TimePoint rests = now + std::min<TimePoint::duration>(worked * options_.rest, options_.max_rest);
    resting_[key] = rests;
    by_rest_.emplace(rests, key);
  }
  const auto dirty = dirty_.find(key);
  if (dirty == dirty_.end()) return;
  if (dirty->second.priority != Priority::kNews || !resting_.contains(key)) return LineUp(key, dirty->second);
  dirty_.erase(dirty);
  WaitUntil(key, resting_.at(key), Priority::kNews);
}

bool WorkQueue::HasTimeFor(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto it = processing_.find(key);
  if (it != processing_.end() && it->second.priority == Priority::kPutOff) return true;
  return ready_.empty() || ready_.begin()->first.first == Priority::kPutOff;
}

void WorkQueue::ShutDown() {
  const std::lock_guard lock(mutex_);
  shut_down_ = true;
  ready_.clear();
  dirty_.clear();
  due_.clear();
  by_due_.clear();
  resting_.clear();
  by_rest_.clear();
  changed_.notify_all();
}

WorkQueue::Stats WorkQueue::GetStats() const {
  const std::lock_guard lock(mutex_);
  Stats stats;
  for (const auto& [place, key] : ready_) {
    switch (place.first) {
      case Priority::kNews: ++stats.news; break;
      case Priority::kBacklog: ++stats.backlog; break;
      case Priority::kPutOff: ++stats.put_off; break;
    }
  }
  const TimePoint now = options_.now();
  for (const auto& [key, processing] : processing_) {
    const double seconds = SecondsBetween(processing.since, now);
    stats.unfinished_seconds += seconds;
    stats.longest_seconds = std::max(stats.longest_seconds, seconds);
  }
  return stats;
}

}  // namespace headrace::kube
