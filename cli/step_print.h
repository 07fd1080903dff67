// A step as `headrace run` shows it: as TensorFlow's guide prints the values of the replicas.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/worker_stream.h"

namespace headrace::cli {

// One worker's part of step `step`, with a newline at the end:
//   "step 0  ([0 1], [2 3])"                  one worker, two replicas
//   "step 0  worker 1  ([4 5], [6 7])"        one of several workers
// Records with several components take a line each, with the component's name. A replica without data shows "[]".
std::string PrintStep(int64_t step, int64_t worker, int64_t num_workers, const WorkerStep& batches);

}  // namespace headrace::cli
