// What follows from a plan for a run of a given size, in words and numbers: the content of `headrace explain`.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/input_file.h"
#include "common/base/status.h"

namespace headrace::cli {

// Looks at the files of the source, if there are any here, but starts nothing and reads no record. Members: input,
// plan, source, pipeline, policy {asked, effective, why}, rebatch, workers, replicasPerWorker, globalBatchSize, pieces,
// shards, stepsPerEpoch, elementSpec, memory, warnings. Unknown numbers are null. Errors: InvalidArgument where a run
// of this size would be refused.
Result<nlohmann::json> Explain(const LocalInput& input, int64_t workers, int64_t replicas_per_worker);

// The same for people, several lines.
std::string PrintExplanation(const nlohmann::json& explanation);

}  // namespace headrace::cli
