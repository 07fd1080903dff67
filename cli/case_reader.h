// Reading an epoch of one worker, by one client or by a process for each replica.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/worker_stream.h"

namespace headrace::cli {

// What to read: at most `most` steps.
struct EpochRequest {
  WorkerStream::Iteration iteration = WorkerStream::Iteration::kNext;
  size_t most = 0;
};

// Starts an epoch of `stream` and appends its steps, as conformance cases write them. Errors: those of next().
Status ReadEpoch(WorkerStream& stream, const EpochRequest& request, nlohmann::json* steps);

// The same by `replicas` processes (`headrace verify --read`), each the only reader of its replica of the loader in
// `run_directory`. Call it on a thread that stays.
Status ReadEpochByProcesses(const std::string& run_directory, int64_t replicas, const EpochRequest& request,
                            nlohmann::json* steps);

// What such a process does: `text` is as ReadEpochByProcesses gives it to --read. Prints one JSON object.
Status PrintEpochOfReplica(const std::string& text);

}  // namespace headrace::cli
