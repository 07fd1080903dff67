// The device library where the CUDA Toolkit is there (no_cuda.cc is its counterpart).
#include <cuda_runtime_api.h>

#include "sidecar/device/device.h"
#include "sidecar/device/self_check.h"

namespace headrace::device {
namespace {

Status CudaStatus(cudaError_t error, const std::string& what) {
  return Unavailable(what + ": " + cudaGetErrorName(error) + ": " + cudaGetErrorString(error));
}

}  // namespace

Report Probe() {
  Report report;
  if (cudaRuntimeGetVersion(&report.runtime_version) != cudaSuccess) report.runtime_version = CUDART_VERSION;
  if (cudaDriverGetVersion(&report.driver_version) != cudaSuccess) report.driver_version = 0;
  if (report.driver_version == 0) return report;

  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) {
    if (error != cudaErrorNoDevice) report.gpu_error = cudaGetErrorString(error);
    return report;
  }
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp properties{};
    if (const cudaError_t error = cudaGetDeviceProperties(&properties, i); error != cudaSuccess) {
      report.gpu_error = cudaGetErrorString(error);
      return report;
    }
    report.gpus.push_back({properties.name, properties.major, properties.minor, properties.totalGlobalMem});
  }
  return report;
}

Status CheckGpu(int index) {
  const std::string where = "GPU " + std::to_string(index);
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || index < 0 || index >= count)
    return NotFound(where + ": CUDA sees " + std::to_string(count) + " GPUs");
  if (const cudaError_t error = cudaSetDevice(index); error != cudaSuccess) return CudaStatus(error, where);

  constexpr uint32_t kInput = 0x68656164;
  uint32_t output = 0;
  if (const cudaError_t error = RunSelfCheckKernel(kInput, &output); error != cudaSuccess)
    return CudaStatus(error, where + ": the self-check kernel");
  if (output != SelfCheckAnswer(kInput))
    return Unavailable(where + ": the self-check kernel gave " + std::to_string(output) + " instead of " +
                       std::to_string(SelfCheckAnswer(kInput)));
  return {};
}

}  // namespace headrace::device
