// Images that are cast, scaled and transposed on the GPU, by kernels of ours (image_kernel.cu).
#pragma once

#include <cstdint>
#include <memory>

#include "common/base/status.h"
#include "common/gpu/context.h"
#include "common/spec/pixel_program.h"

namespace headrace::device {

// The kernels, loaded into one GPU's context. Any thread.
class ImageKernels {
 public:
  // `context` must outlive this. Errors: Unavailable, where this build is without CUDA, or the driver or the GPU does
  // not take its code.
  static Result<std::unique_ptr<ImageKernels>> Load(const gpu::PrimaryContext* context);
  // REQUIRES: no stream has yet to run them.
  ~ImageKernels();
  ImageKernels(const ImageKernels&) = delete;
  ImageKernels& operator=(const ImageKernels&) = delete;

  // Enqueues on `stream` what `program` makes of `count` images of uint8: [count, pixels, channels] becomes [count,
  // channels, pixels] of floats. Does not wait: both places, memory of the GPU, must stay until the stream has come
  // past it. REQUIRES: program.channels_first, and `out` is aligned to its values. Quick where both are aligned to 16
  // bytes, images have 1, 3 or 4 channels, and their pixels are a multiple of 16. Errors: InvalidArgument where there
  // are more images than a launch can number; Unavailable with CUDA's message.
  Status Enqueue(const PixelProgram& program, gpu::DevicePtr images, int64_t count, gpu::DevicePtr out,
                 gpu::Stream stream) const;

 private:
  explicit ImageKernels(const gpu::PrimaryContext* context) : context_(*context) {}

  const gpu::PrimaryContext& context_;
  gpu::Module module_ = nullptr;
  gpu::Function one_channel_ = nullptr;
  gpu::Function three_channels_ = nullptr;
  gpu::Function four_channels_ = nullptr;
  gpu::Function any_ = nullptr;
};

}  // namespace headrace::device
