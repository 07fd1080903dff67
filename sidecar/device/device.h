// What this process can do with GPUs: the CUDA runtime it is linked with, the driver it finds when it starts, the GPUs.
//
// Chosen at link time: cuda.cc where CMake found or fetched the CUDA Toolkit, else no_cuda.cc; callers see no
// difference but the report. The runtime is linked statically and opens the driver (libcuda.so.1) by itself at the
// first call, so the same binary starts on machines without a GPU.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace headrace::device {

struct Gpu {
  std::string name;
  int compute_major = 0;
  int compute_minor = 0;
  uint64_t memory_bytes = 0;
};

struct Report {
  int runtime_version = 0;  // of the linked CUDA runtime, 13050 for 13.5; 0: built without CUDA
  int driver_version = 0;   // newest CUDA that the driver can serve, coded alike; 0: no driver in this process
  std::vector<Gpu> gpus;
  std::string gpu_error;  // what CUDA said when it was asked for the GPUs and refused
};

// Asks runtime and driver. Makes no context and takes no GPU memory. Any thread; a few milliseconds, more where the
// driver is loaded for the first time.
Report Probe();

// Runs one kernel of ours on GPU `index` and checks its result: finds a GPU that this build has no code for, or one
// that is broken. Makes a context on the GPU. Errors: NotFound without such a GPU, Unavailable with CUDA's message.
Status CheckGpu(int index);

// "2 GPUs", or why there is none: "no CUDA driver in this process".
std::string GpuText(const Report& report);

// 13050 -> "13.5".
std::string CudaVersionText(int version);

}  // namespace headrace::device
