// A step as `headrace run` shows it: as TensorFlow's guide prints the values of the replicas.
#pragma once

#include <cstdint>
#include <string>

#include "cli/worker_stream.h"

namespace headrace::cli {

struct StepPlace {
  int64_t step = 0;
  int64_t worker = 0;
  int64_t num_workers = 1;
  int64_t replicas_per_worker = 1;
};

// One worker's part of a step, with a newline at the end:
//   "step 0  ([0 1], [2 3])"                  one worker, two replicas
//   "step 0  worker 0  ([0 1], [2 3])"        the first of several workers; the others are indented below it
// Records with several components take a line each, with the component's name. A replica without data shows "[]", as
// do all of a worker whose epoch ended before the others'.
std::string PrintStep(const StepPlace& place, const WorkerStep& batches);

}  // namespace headrace::cli
