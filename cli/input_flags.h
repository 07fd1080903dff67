// The flags with which commands name an input and the size of its run.
#pragma once

#include <algorithm>
#include <array>
#include <string>

#include "cli/flags.h"
#include "cli/input_file.h"

namespace headrace::cli {

inline constexpr std::array<Flag, 4> kInputFlags = {{
    {"file", "FILE", "YAML file with the DistributedInput; - is standard input", 'f'},
    {"input", "NAME", "which one, if the file holds several", 0},
    {"workers", "N", "number of workers (default 1)", 'w'},
    {"replicas", "N", "replicas a worker (default: spec.distribution.replicasPerWorker, else 1)", 'r'},
}};

// Those, then a command's own.
template <size_t N>
constexpr std::array<Flag, kInputFlags.size() + N> WithInputFlags(const Flag (&own)[N]) {
  std::array<Flag, kInputFlags.size() + N> flags;
  std::copy(own, own + N, std::copy(kInputFlags.begin(), kInputFlags.end(), flags.begin()));
  return flags;
}

struct SizedInput {
  std::string file;  // as given
  LocalInput input;
  int64_t workers = 1;
  int64_t replicas = 1;  // of each worker
};

// What kInputFlags say. `command` is the one that asks, for errors. Errors: InvalidArgument, and LoadInput's.
Result<SizedInput> ReadSizedInput(const CommandLine& line, const std::string& command);

}  // namespace headrace::cli
