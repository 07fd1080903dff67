#include "sidecar/device/nccl_module.h"

#include <nccl.h>

const char* headrace_nccl_version(int* version) {
  const ncclResult_t result = ncclGetVersion(version);
  return result == ncclSuccess ? nullptr : ncclGetErrorString(result);
}
