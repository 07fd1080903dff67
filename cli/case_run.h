// One conformance case through the whole path: files, plan, loader processes, rings, the C client.
#pragma once

#include <string>
#include <vector>

#include "cli/conformance.h"

namespace headrace::cli {

// Who reads a worker's replicas: one client for all, as a trainer with a strategy does, or a process for each.
enum class Readers { kOneAWorker, kOneAReplica };

// What differs from the case, one line each; empty if it passes. Blocks; one thread a call, several at once are fine.
std::vector<std::string> RunCase(const ConformanceCase& conformance_case, Readers readers);

}  // namespace headrace::cli
