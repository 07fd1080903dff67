// One conformance case through the whole path: files, plan, loader processes, rings, the C client.
#pragma once

#include <string>
#include <vector>

#include "cli/conformance.h"

namespace headrace::cli {

// What differs from the case, one line each; empty if it passes. Blocks; one thread a call, several at once are fine.
std::vector<std::string> RunCase(const ConformanceCase& conformance_case);

}  // namespace headrace::cli
