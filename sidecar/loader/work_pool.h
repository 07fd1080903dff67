// The threads that decode: as many as the container's CPU limit gives, fewer while the trainer does not wait.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace headrace::side {

// Jobs start in the order in which they are added. The thread that adds them is thread 0, which helps by RunOne; the
// pool's own are 1 .. threads - 1.
class WorkPool {
 public:
  struct Job {
    void (*run)(void* context, size_t part, size_t thread) = nullptr;
    void* context = nullptr;
    size_t part = 0;
  };

  explicit WorkPool(size_t threads);
  ~WorkPool();  // drops the jobs that have not started
  WorkPool(const WorkPool&) = delete;
  WorkPool& operator=(const WorkPool&) = delete;

  size_t threads() const { return workers_.size() + 1; }
  // The caller goes on to add, or to RunOne, before it waits for anything: a single job wakes nobody.
  void Add(const Job& job);
  // Runs the oldest job on the caller's thread, as thread 0. false: there is none.
  bool RunOne();
  // Drops the jobs that have not started, and waits for the others. Not to be called by a job.
  void Drain();
  // How many threads take jobs from now on, thread 0 among them: at least 1.
  void SetActive(size_t threads);
  size_t active() const { return active_.load(std::memory_order_relaxed); }

 private:
  void Work(size_t thread);
  // REQUIRES: there is one, and the lock is held.
  Job Take();

  std::mutex mutex_;
  std::condition_variable added_;    // the active wait for jobs
  std::condition_variable resumed_;  // the others, to be active
  std::condition_variable idle_;     // Drain waits for running_ to be 0
  std::deque<Job> jobs_;
  std::atomic<size_t> queued_{0};  // jobs_.size(), to look at without the lock
  size_t running_ = 0;             // jobs
  std::atomic<size_t> active_;
  bool ended_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace headrace::side
