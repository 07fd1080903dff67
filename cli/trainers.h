// The user's own command as the trainer of each worker: `headrace run ... -- COMMAND`.
#pragma once

#include <string>
#include <vector>

#include "cli/loaders.h"
#include "common/base/status.h"

namespace headrace::cli {

// Runs `command` once for each worker, with HEADRACE_DIR and its kind set, and MASTER_ADDR, MASTER_PORT, RANK and
// WORLD_SIZE as torchrun sets them. With several workers each line of output gets "[worker N] " before it. Blocks
// until all have ended; when one fails, the others are stopped. Returns the exit status of the first that failed, or 0.
Result<int> RunTrainers(const std::vector<std::string>& command, const LoaderGroup& loaders);

}  // namespace headrace::cli
