// This worker's side of an agreement: what it has announced, and what it has been told. Where the loader's threads and
// the network's thread meet; no sockets.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "common/base/status.h"
#include "sidecar/collective/ledger.h"
#include "sidecar/collective/wire.h"

namespace headrace::side {

class Local {
 public:
  // See Agreement for Announce, AnyHasStep and failure.

  // True if the network must hear of it now, since somebody waits. By one thread.
  bool Announce(uint64_t epoch, int64_t steps, bool ended);
  // `wake` is called when the network must hear that somebody waits.
  Result<bool> AnyHasStep(uint64_t epoch, int64_t step, const std::function<bool()>& give_up,
                          const std::function<void()>& wake);
  // The first failure stays.
  Status failure() const;

  // What the others are to be told.
  struct Position {
    uint64_t epoch = 0;
    int64_t steps = 0;
    bool ended = false;
    uint64_t waits_until = 0;
    std::map<uint64_t, int64_t> finals;  // of epochs that were left
  };
  Position position() const;

  // What the others have told.
  void Watch(uint64_t until);   // progress in epochs below `until` is waited for
  void Forget(uint64_t floor);  // nobody asks for finals below `floor`
  void Learn(uint64_t epoch, const EpochKnowledge& knowledge);
  // Epochs from `epoch` on (wire::kNever: none) cannot be closed any more, because `why`.
  void Block(uint64_t epoch, const std::string& why);
  void Fail(const Status& why);

 private:
  void Changed();  // REQUIRES: mutex_ is held

  // The announcing thread's own.
  uint64_t announced_epoch_ = 0;
  bool announced_end_ = false;

  std::atomic<int64_t> steps_{0};  // of the announced epoch; reset under mutex_
  std::atomic<uint64_t> watched_until_{0};
  std::atomic<bool> failed_{false};

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t changes_ = 0;
  Position position_;  // but steps, which are in steps_
  std::map<uint64_t, EpochKnowledge> known_;
  uint64_t blocked_from_ = wire::kNever;
  std::string blocked_why_;
  Status failure_;
};

}  // namespace headrace::side
