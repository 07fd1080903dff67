#include "sidecar/loader/work_pool.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>

#include "common/ring/futex.h"

namespace headrace::side {
namespace {

// About ten microseconds: less than falling asleep and being woken takes.
constexpr int kSpinRounds = 256;

// CPUs' worth of the cgroup's quota, as containers see it; 0: no limit.
double CgroupCpus() {
  double quota = 0;
  double period = 0;
  std::string word;
  if (std::ifstream v2("/sys/fs/cgroup/cpu.max"); v2 >> word >> period) {
    return word == "max" || period <= 0 ? 0 : std::atof(word.c_str()) / period;
  }
  std::ifstream quota_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  std::ifstream period_file("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  if (!(quota_file >> quota) || !(period_file >> period) || quota <= 0 || period <= 0) return 0;
  return quota / period;
}

}  // namespace

size_t UsableCpus() {
  cpu_set_t set;
  size_t cpus = 1;
  if (sched_getaffinity(0, sizeof set, &set) == 0) cpus = static_cast<size_t>(CPU_COUNT(&set));
  if (const double limit = CgroupCpus(); limit > 0) cpus = std::min(cpus, static_cast<size_t>(std::ceil(limit)));
  return std::max<size_t>(cpus, 1);
}

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
