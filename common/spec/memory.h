// How much memory a worker's loader takes, as far as the spec tells: for people (headrace explain) and for the
// resources that the webhook asks for.
#pragma once

#include <cstdint>
#include <optional>

#include "common/spec/plan.h"

namespace headrace {

// What one worker takes, in bytes.
struct LoaderMemory {
  int64_t slot_bytes = 0;      // one replica's batch in its ring
  int64_t prefetch_steps = 0;  // batches ahead
  int64_t ring_bytes = 0;      // all rings of the worker, shared with the trainers; the loader writes them
  // What of the rings is used for certain: values of variable length have room there that they may not need.
  int64_t certain_ring_bytes = 0;
  std::optional<int64_t> shuffle_bytes;  // none: nothing tells how large a record is
  int64_t read_ahead_bytes = 0;          // read, and not yet in a ring
  std::optional<int64_t> loader_bytes;   // the loader's own: the two above and the program
};

// A look at the files, where they are at hand.
struct FilesSeen {
  std::optional<int64_t> record_bytes = std::nullopt;  // of one record as it is stored; none: by the features
  bool remote = false;                                 // in an object store
};

// The most rows in a batch of one replica; 0 where the spec does not say (nothing is batched, or batches of batches).
int64_t LargestPiece(const Plan& plan, const Topology& run);

// None where the size of a batch is not known before the data is read. `rows`: of the largest batch of one replica.
std::optional<LoaderMemory> EstimateMemory(const Plan& plan, const Topology& run, int64_t rows, const FilesSeen& files);

// How many steps lie ready ahead where spec.delivery.prefetchSteps does not say it: what 16 MiB hold for each replica,
// at least 4 and at most 16. `slot_bytes`: of one replica's largest batch. Why not the number of replicas in sync, as
// TensorFlow's guide has it: docs/decisions/0037.
int64_t DefaultPrefetchSteps(int64_t slot_bytes);

// What a ring's parts are aligned to; common/ring/layout.h holds the same.
inline constexpr int64_t kRingTensorAlign = 64;
inline constexpr int64_t kRingPageBytes = 4096;

}  // namespace headrace
