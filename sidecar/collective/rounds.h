// Whose turn it is in an exchange of batches: where the exchange's thread and the network's thread meet. No sockets.
//
// An exchange is a row of rounds. In round 0 the workers join it; each later one moves one delivery to each worker. A
// worker says that it is ready for a round, and what it wants; when all are, worker 0 says what is moved, and all begin
// at once: nobody waits inside the exchange for one that is slow or gone. Whatever goes wrong at one worker ends the
// exchange for all, for good, with a reason that names the worker. So does a loader that leaves, which is no error.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "sidecar/collective/wire.h"

namespace headrace::side {

class Rounds {
 public:
  // `wake` is called when the network must hear of something.
  Rounds(int64_t num_workers, std::function<void()> wake);

  // By the exchange's thread. What blocks asks `give_up` at least every 50 ms; errors: Cancelled if it gives up,
  // what ended the exchange.

  // Worker 0: waits until the others are ready for `round`, and returns what they want: of worker 1, 2, ...
  Result<std::vector<wire::Ready>> AwaitAll(uint64_t round, const std::function<bool()>& give_up);
  // Worker 0: what happens in the round, to worker 1, 2, ...
  void SayGo(std::vector<wire::Go> go);
  // The others: ready for a round; then waits for its begin.
  Result<wire::Go> AwaitGo(const wire::Ready& ready, const std::function<bool()>& give_up);

  // Any thread. The first reason stays; Cancelled: a loader has left.
  void End(const Status& why);
  bool ended() const { return ended_.load(std::memory_order_relaxed); }

  // By the network's thread.

  // At worker 0, of another worker.
  void Hear(int64_t worker, const wire::Ready& ready);
  std::optional<wire::Go> GoOf(int64_t worker) const;
  // At the others.
  void Hear(const wire::Go& go);
  std::optional<wire::Ready> ready() const;
  // A worker is gone: that ends the exchange, unless it has not begun.
  void Lose(int64_t worker, const Status& why);
  Status why_ended() const;  // ok: it has not

 private:
  void EndLocked(const Status& why);

  const std::function<void()> wake_;
  std::atomic<bool> ended_{false};

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool begun_ = false;
  Status why_;
  std::vector<std::optional<wire::Ready>> ready_;  // worker 0: of the others; else this worker's own, the first
  std::vector<std::optional<wire::Go>> go_;        // alike
};

}  // namespace headrace::side
