// How much memory a worker's loader takes, by the spec and a look at its files.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "common/spec/plan.h"

namespace headrace::cli {

// null if the size of a batch is not known. `rows`: of the largest batch of one replica; `files`: those found here.
//
// {"slotBytes", "prefetchSteps", "bytesPerWorker"}: of the rings, which are shared with the trainer. {"shuffleBytes",
// "readAheadBytes", "loaderBytes"}: what shuffle buffers may take, what is read ahead of the rings, and the loader's
// memory beside the rings, these and the program itself; null where nothing tells how large a record is.
nlohmann::json MemoryEstimate(const Plan& plan, const std::vector<std::string>& files, int64_t rows, int64_t workers,
                              int64_t replicas_per_worker);

}  // namespace headrace::cli
