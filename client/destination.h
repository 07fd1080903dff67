// Where a worker's batches go: spec.delivery.memory, held against what the trainer takes and what its process finds.
#pragma once

#include <vector>

#include "client/connection.h"

namespace headrace::client {

// One destination a replica: Device where the loader fills a ring on a GPU that this process sees, else Pinned where it
// sees any, else Host. Opens the CUDA driver where the input and the trainer allow a GPU. Errors: InvalidArgument where
// the trainer names GPUs that are not there, or takes host memory where a batch is in GPU memory alone; those of
// gpu::CountGpus where the input says Pinned or Device.
Result<std::vector<Destination>> ChooseDestinations(const ConnectPolicy& policy, const ring::HandshakeReply& reply);

}  // namespace headrace::client
