// Keys to look at, each at most once at a time.
//
//   while (auto key = queue.Get()) { Reconcile(*key); queue.Done(*key); }
//
// A key added while it is being worked on comes again after Done. Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace headrace::kube {

class WorkQueue {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::milliseconds;

  struct Options {
    Duration base_delay{5};
    Duration max_delay{1'000'000};
    std::function<TimePoint()> now = std::chrono::steady_clock::now;
    std::function<void()> on_add = {};                // a key became ready or dirty; may be null, as the others
    std::function<void(double seconds)> on_get = {};  // how long the key was ready
    std::function<void(double seconds)> on_done = {};
    std::function<void()> on_retry = {};
  };
  explicit WorkQueue(Options options);

  // No effect if the key is waiting to be taken already.
  void Add(const std::string& key);
  // Adds the key when `delay` has passed; of several, the earliest counts.
  void AddAfter(const std::string& key, Duration delay);
  // Adds the key after its backoff: base * 2^failures, at most max. Counts one more failure.
  void AddRateLimited(const std::string& key);
  // Forgets the key's failures.
  void Forget(const std::string& key);
  int Failures(const std::string& key) const;

  // Blocks until there is a key; nothing once the queue is shut down. Each key taken is given back with Done.
  std::optional<std::string> Get();
  // Get without blocking.
  std::optional<std::string> TryGet();
  void Done(const std::string& key);

  // Wakes all Get calls for good; what waits is dropped.
  void ShutDown();

  struct Stats {
    size_t depth = 0;
    double unfinished_seconds = 0;  // sum over the keys being worked on
    double longest_seconds = 0;
  };
  Stats GetStats() const;

 private:
  // All REQUIRE mutex_.
  void AddLocked(const std::string& key);
  void DelayLocked(const std::string& key, Duration delay);
  void PromoteDue();
  std::optional<std::string> TakeLocked();

  const Options options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // All guarded by mutex_.
  std::deque<std::string> ready_;
  std::map<std::string, TimePoint> dirty_;       // to be worked on, since when; includes the keys in ready_
  std::map<std::string, TimePoint> processing_;  // since when
  std::map<std::string, TimePoint> due_;         // delayed keys
  std::multimap<TimePoint, std::string> by_due_;
  std::map<std::string, int> failures_;
  bool shut_down_ = false;
};

}  // namespace headrace::kube
