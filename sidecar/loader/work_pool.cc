#include "sidecar/loader/work_pool.h"

#include <algorithm>

#include "common/ring/futex.h"

namespace headrace::side {
namespace {

// About ten microseconds: less than falling asleep and being woken takes.
constexpr int kSpinRounds = 256;

}  // namespace

WorkPool::WorkPool(size_t threads) : active_(threads) {
  for (size_t thread = 1; thread < threads; ++thread) workers_.emplace_back([this, thread] { Work(thread); });
}

WorkPool::~WorkPool() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    jobs_.clear();
    queued_ = 0;
  }
  added_.notify_all();
  resumed_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void WorkPool::Add(const Job& job) {
  bool others = false;
  {
    const std::lock_guard lock(mutex_);
    others = !jobs_.empty();
    jobs_.push_back(job);
    queued_.store(jobs_.size(), std::memory_order_relaxed);
  }
  // A single one is the caller's own, who comes for it sooner than a thread wakes up.
  if (others && active() > 1) added_.notify_one();
}

WorkPool::Job WorkPool::Take() {
  const Job job = jobs_.front();
  jobs_.pop_front();
  queued_.store(jobs_.size(), std::memory_order_relaxed);
  return job;
}

bool WorkPool::RunOne() {
  if (queued_.load(std::memory_order_relaxed) == 0) return false;
  Job job;
  {
    const std::lock_guard lock(mutex_);
    if (jobs_.empty()) return false;
    job = Take();
  }
  job.run(job.context, job.part, 0);
  return true;
}

void WorkPool::Drain() {
  std::unique_lock lock(mutex_);
  jobs_.clear();
  queued_ = 0;
  idle_.wait(lock, [&] { return running_ == 0; });
}

void WorkPool::SetActive(size_t threads) {
  {
    const std::lock_guard lock(mutex_);
    active_ = std::clamp<size_t>(threads, 1, this->threads());
  }
  added_.notify_all();
  resumed_.notify_all();
}

void WorkPool::Work(size_t thread) {
  std::unique_lock lock(mutex_);
  while (true) {
    resumed_.wait(lock, [&] { return ended_ || thread < active_; });
    added_.wait(lock, [&] { return ended_ || !jobs_.empty() || thread >= active_; });
    if (ended_) return;
    while (!jobs_.empty() && thread < active_) {
      const Job job = Take();
      ++running_;
      lock.unlock();
      job.run(job.context, job.part, thread);
      lock.lock();
      if (--running_ == 0) idle_.notify_all();
      if (!jobs_.empty()) continue;
      lock.unlock();
      for (int round = 0; round < kSpinRounds && queued_.load(std::memory_order_relaxed) == 0; ++round) {
        ring::CpuRelax();
      }
      lock.lock();
    }
  }
}

}  // namespace headrace::side
