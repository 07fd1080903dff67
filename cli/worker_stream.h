// What a trainer of one worker sees, through the C client: all its replicas, read step by step.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/array_print.h"
#include "common/base/status.h"

namespace headrace::cli {

struct ReplicaBatch {
  int64_t rows = 0;
  std::vector<TensorView> tensors;  // one for each component
};

// One step of one worker: a batch for each of its replicas; empty at the end of the epoch.
using WorkerStep = std::vector<ReplicaBatch>;

// Connected to every replica of one worker. Used by one thread.
class WorkerStream {
 public:
  enum class Iteration { kNext, kNextAsOptional };

  // Waits up to timeout_ms for the loader. `give_up` is asked every 50 ms of waiting, here and in Next, on the calling
  // thread; a true ends the wait with Cancelled. Errors: the loader's own, as a trainer would get them; Unavailable.
  // `replica` is the only one to be read; -1: all of the worker's.
  static Result<std::unique_ptr<WorkerStream>> Connect(const std::string& run_directory, int timeout_ms,
                                                       std::function<bool()> give_up, int replica = -1);
  ~WorkerStream();
  WorkerStream(const WorkerStream&) = delete;
  WorkerStream& operator=(const WorkerStream&) = delete;

  std::string element_spec() const;  // TensorFlow's print
  std::string effective_policy() const;
  std::vector<std::string> warnings() const;
  // tf.distribute.InputContext by its members' names, with per_replica_batch_size; null where that is not whole.
  nlohmann::json InputContext(int64_t global_batch_size) const;
  // headrace_distribute_values with a function that returns 1.0, or the replica's id.
  std::vector<nlohmann::json> Values(bool replica_id) const;

  Status StartEpoch();
  // The next step; its batches are valid until the next call. Waits up to timeout_ms; -1 is for ever. Errors: the
  // loader's; Cancelled; Unavailable when the time is over.
  Result<WorkerStep> Next(Iteration iteration, int timeout_ms);

 private:
  struct State;
  explicit WorkerStream(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The records of a batch as conformance cases write them: one value or list a record, a list of components where there
// are several; an element without a batch dimension as it is.
nlohmann::json RecordsAsJson(const ReplicaBatch& batch);

}  // namespace headrace::cli
