// The table of `headrace top`.
#pragma once

#include <string>
#include <vector>

#include "cli/loader_metrics.h"

namespace headrace::cli {

struct LoaderView {
  std::string name;
  Status status;      // why there are no rates
  LoaderRates rates;  // where that is ok
};

// A row for each replica of each loader, a sentence below each loader that says who waits for whom, and for several
// loaders their sum. Lines end with \n; no control characters, whatever the loaders' names hold.
std::string PrintTop(const std::vector<LoaderView>& loaders);

// "12,345" and "12.3": a rate as a person reads it.
std::string Rate(double value);
// Of bytes, in units of 10^6.
std::string Megabytes(double bytes);

}  // namespace headrace::cli
