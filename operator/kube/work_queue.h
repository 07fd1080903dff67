// Keys to look at, each at most once at a time.
//
//   while (auto key = queue.Get()) { Reconcile(*key); queue.Done(*key); }
//
// A key added while it is being worked on comes again after Done. News passes the backlog, as in controller-runtime's
// priority queue, and both pass what is put off; of one priority, who came first is first.
//
// A key that changes all the time, as while a thousand pods of one run start, takes a tenth of a worker: after Done it
// rests nine times as long as it was worked on, at most a second, and what is new meanwhile is looked at once,
// afterwards (as Kubernetes' Job controller gathers the changes of a second). Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace headrace::kube {

// The more urgent is the smaller.
enum class Priority {
  kNews,     // something changed
  kBacklog,  // it was there before, and is looked at since nobody knows what was missed
  kPutOff,   // what is left to do for it, nobody waits for
};

class WorkQueue {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::milliseconds;

  struct Options {
    Duration base_delay{5};
    Duration max_delay{1'000'000};
    int rest = 9;  // times as long as the key was worked on ...
    Duration max_rest{1000};
    std::function<TimePoint()> now = std::chrono::steady_clock::now;
    std::function<void()> on_add = {};                // a key became ready or dirty; may be null, as the others
    std::function<void(double seconds)> on_get = {};  // how long the key was ready
    std::function<void(double seconds)> on_done = {};
    std::function<void()> on_retry = {};
  };
  explicit WorkQueue(Options options);

  // If the key is waiting to be taken already, it waits with the more urgent of the priorities.
  void Add(const std::string& key, Priority priority = Priority::kNews);
  // Adds the key when `delay` has passed; of several, the earliest counts. It keeps the priority at which it is being
  // worked on; news, if it is not.
  void AddAfter(const std::string& key, Duration delay);
  // As AddAfter with its backoff: base * 2^failures, at most max. Counts one more failure.
  void AddRateLimited(const std::string& key);
  // Forgets the key's failures.
  void Forget(const std::string& key);
  int Failures(const std::string& key) const;

  // Blocks until there is a key; nothing once the queue is shut down. Each key taken is given back with Done.
  std::optional<std::string> Get();
  // Get without blocking.
  std::optional<std::string> TryGet();
  void Done(const std::string& key);

  // Whether now is the time for what can be put off: `key`, which is being worked on, was taken as such, or none waits
  // that would pass it.
  bool HasTimeFor(const std::string& key) const;

  // Wakes all Get calls for good; what waits is dropped.
  void ShutDown();

  struct Stats {
    size_t news = 0, backlog = 0, put_off = 0;  // keys that wait
    double unfinished_seconds = 0;              // sum over the keys being worked on
    double longest_seconds = 0;
  };
  Stats GetStats() const;

 private:
  struct Dirty {
    TimePoint since;
    Priority priority;
    uint64_t ticket = 0;  // its place in ready_; 0: it has none, as it is being worked on
  };
  struct Processing {
    TimePoint since;
    Priority priority;
  };
  struct Due {
    TimePoint at;
    Priority priority;
  };

  // All REQUIRE mutex_.
  void AddLocked(const std::string& key, Priority priority);
  void LineUp(const std::string& key, Dirty& dirty);
  void DelayLocked(const std::string& key, Duration delay);
  void WaitUntil(const std::string& key, TimePoint at, Priority priority);
  // When the key may be worked on again for news, if that is not now.
  std::optional<TimePoint> RestsUntil(const std::string& key);
  void PromoteDue();
  std::optional<std::string> TakeLocked();

  const Options options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // All guarded by mutex_.
  std::map<std::pair<Priority, uint64_t>, std::string> ready_;  // by priority, then ticket
  uint64_t last_ticket_ = 0;
  std::map<std::string, Dirty> dirty_;  // to be worked on; includes the keys in ready_
  std::map<std::string, Processing> processing_;
  std::map<std::string, Due> due_;  // delayed keys
  std::multimap<TimePoint, std::string> by_due_;
  std::map<std::string, TimePoint> resting_;
  std::multimap<TimePoint, std::string> by_rest_;  // the same, by time
  std::map<std::string, int> failures_;
  bool shut_down_ = false;
};

}  // namespace headrace::kube
