// Who waits for whom between a loader's storage, its stages and its trainer.
#pragma once

#include <string>

#include "cli/loader_metrics.h"

namespace headrace::cli {

enum class Limit {
  kNothingTaken,  // no batch moves, and nobody waits for one
  kTrainer,       // takes batches more slowly than they are made
  kInput,         // reading waits for storage, or for the dataset function
  kRead,          // the one thread that reads, shuffles and batches
  kDecodeInput,   // records are read from storage as they are decoded, and that takes the time
  kDecode,        // the threads that decode
  kTurns,         // two sides wait for one another by turns: handing over takes the time, or CPUs are taken by others
  kReplica,       // another replica of this worker keeps its ring full
  kOthers,        // no stage is at work: the other workers' loaders are waited for
};

struct Verdict {
  Limit limit = Limit::kNothingTaken;
  std::string sentence;  // one line for a person, without a full stop
};

Verdict Judge(const LoaderRates& interval);

// What a user can do about it: one sentence with a full stop.
std::string Remedy(Limit limit);

// "43 %": of 1. At most 100, since counters are read a moment after one another.
std::string Percent(double share);

}  // namespace headrace::cli
