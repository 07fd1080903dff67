#include "sidecar/device/self_check.h"

namespace headrace::device {
namespace {

__global__ void SelfCheckKernel(uint32_t input, uint32_t* output) { *output = input * 3U + 0x9E3779B9U; }

}  // namespace

cudaError_t RunSelfCheckKernel(uint32_t input, uint32_t* output) {
  uint32_t* on_gpu = nullptr;
  if (const cudaError_t error = cudaMalloc(&on_gpu, sizeof *on_gpu); error != cudaSuccess) return error;
  SelfCheckKernel<<<1, 1>>>(input, on_gpu);
  cudaError_t error = cudaGetLastError();
  // Waits for the kernel: both run on the default stream.
  if (error == cudaSuccess) error = cudaMemcpy(output, on_gpu, sizeof *output, cudaMemcpyDeviceToHost);
  const cudaError_t freed = cudaFree(on_gpu);
  return error == cudaSuccess ? freed : error;
}

}  // namespace headrace::device
