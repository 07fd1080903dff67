// What `headrace bench` says about an input.
#pragma once

#include <string>
#include <vector>

#include "cli/loader_metrics.h"

namespace headrace::cli {

struct BenchResult {
  double seconds = 0;                // measured
  double first_batch_ms = 0;         // from the start of the loaders to the first batch of the last worker
  double cpu_seconds = 0;            // of all loaders, while it was measured
  double memory_bytes = 0;           // of all loaders, the most so far, their rings among it
  std::vector<LoaderRates> workers;  // while it was measured
};

// Ends with the limiting stage and what can be done.
std::string PrintBench(const BenchResult& result);

}  // namespace headrace::cli
