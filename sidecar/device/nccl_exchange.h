// An exchange over NCCL. Part of the module libheadrace_nccl.so, see nccl.h for how it is opened.
#pragma once

#include <memory>

#include "sidecar/collective/exchange.h"

namespace headrace::device {

// On the first GPU that this process sees, of which it makes a context. Workers that share a GPU are refused by NCCL,
// unless NCCL_MULTI_RANK_GPU_ENABLE=1. Parts are bytes of the exchange's own memory: locked memory of the host, which
// NCCL reads and writes through the GPU. Errors: those of gpu::Driver::Open and gpu::PrimaryContext::Retain.
Result<std::unique_ptr<side::Exchange>> MakeNcclExchange(const side::ExchangeOptions& options);

}  // namespace headrace::device
