// One small kernel, to learn whether a GPU runs the code of this build. Seen by cuda.cc only.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace headrace::device {

// Computes SelfCheckAnswer(input) on the current GPU into *output.
cudaError_t RunSelfCheckKernel(uint32_t input, uint32_t* output);

// A step of a Weyl sequence: differs from the input and from memory that nobody wrote.
constexpr uint32_t SelfCheckAnswer(uint32_t input) { return input * 3U + 0x9E3779B9U; }

}  // namespace headrace::device
