// Moves batches from worker 0's loader to the others', where the loaders hold what is made for that: see
// sidecar/device/nccl_exchange.h. When to move what is said by the agreement's messages (sidecar/collective/rounds.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "common/base/status.h"

namespace headrace::side {

// Used by one thread. All workers make the same calls in the same order, and each returns when its own share of the
// work is done. After the first error none works any more, and the other workers' calls fail or wait: they are to be
// told to give up. `give_up` is asked every few milliseconds. Errors: Cancelled if it gives up; Unavailable with what
// the library below says, or that a call took longer than the options' timeout.
class Exchange {
 public:
  using GiveUp = std::function<bool()>;
  struct Part {
    uint8_t* data = nullptr;
    size_t bytes = 0;
  };

  virtual ~Exchange() = default;

  // What all workers join by: made by worker 0, passed on to the others. At most wire::kMaxTextBytes.
  virtual Result<std::string> NewId() = 0;
  // Returns once all workers have joined.
  virtual Status Join(const std::string& id, const GiveUp& give_up) = 0;

  // Memory that may be moved from and to, as long as the exchange lives, whatever has failed. Errors: Exhausted.
  virtual Result<uint8_t*> Allocate(size_t bytes) = 0;

  // Worker 0's bytes, of which all give the same number, to all.
  virtual Status Broadcast(const Part& part, const GiveUp& give_up) = 0;
  // Worker 0 hands part w to worker w, but for its own, the first.
  virtual Status Scatter(std::span<const Part> parts, const GiveUp& give_up) = 0;
  // The others' side of it, with as many bytes.
  virtual Status Receive(const Part& part, const GiveUp& give_up) = 0;
};

struct ExchangeOptions {
  int64_t num_workers = 0;
  int64_t worker = 0;
  int64_t timeout_ms = 0;  // of one call
};

}  // namespace headrace::side
