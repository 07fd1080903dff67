#include "sidecar/device/nccl_module.h"

#include <nccl.h>

const char* headrace_nccl_version(int* version) {
  const ncclResult_t result = ncclGetVersion(version);
  return result == ncclSuccess ? nullptr : ncclGetErrorString(result);
}

const headrace::device::NcclFunctions* headrace_nccl_functions() {
  static constexpr headrace::device::NcclFunctions kFunctions = {headrace::device::MakeNcclExchange};
  return &kFunctions;
}
