// The image kernel. Seen by images_cuda.cc and the kernel's own test only.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "common/spec/pixel_program.h"

namespace headrace::device {

// Enqueues on `stream`, of the current context, what `program` makes of `count` images. Both are memory of that GPU,
// and `out` is aligned to its values; where both are aligned to 16 bytes, images of 1, 3 or 4 channels whose pixels are
// a multiple of 16 go the quick way. The program is copied. REQUIRES: program.channels_first.
cudaError_t LaunchImageKernel(const PixelProgram& program, const void* images, int64_t count, void* out,
                              cudaStream_t stream);

}  // namespace headrace::device
