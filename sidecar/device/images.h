// Images that are cast, scaled and transposed on the GPU, by a kernel of ours (image_kernel.cu).
#pragma once

#include <cstdint>

#include "common/base/status.h"
#include "common/gpu/abi.h"
#include "common/spec/pixel_program.h"

namespace headrace::device {

// Enqueues on `stream` what `program` makes of `count` images of uint8: [count, pixels, channels] becomes [count,
// channels, pixels] of floats. Does not wait: both places, memory of the calling thread's current context, must stay
// until the stream has come past it. REQUIRES: program.channels_first, and `out` is aligned to its values. Quick where
// both are aligned to 16 bytes, images have 1, 3 or 4 channels, and their height times width is a multiple of 16. Any
// thread. Errors: Unavailable with CUDA's message, or where this build is without CUDA.
Status EnqueueImages(const PixelProgram& program, gpu::DevicePtr images, int64_t count, gpu::DevicePtr out,
                     gpu::Stream stream);

}  // namespace headrace::device
