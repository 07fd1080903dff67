// What libheadrace_nccl.so exports. Seen by nccl.cc and nccl_module.cc only.
#pragma once

#include "sidecar/device/nccl_exchange.h"

namespace headrace::device {

struct NcclFunctions {
  Result<std::unique_ptr<side::Exchange>> (*make_exchange)(const side::ExchangeOptions& options);
};

}  // namespace headrace::device

extern "C" {

// Null on success, else NCCL's message, which lives as long as the process.
__attribute__((visibility("default"))) const char* headrace_nccl_version(int* version);
// Lives as long as the process. Loader and module are always of one build.
__attribute__((visibility("default"))) const headrace::device::NcclFunctions* headrace_nccl_functions();
}
