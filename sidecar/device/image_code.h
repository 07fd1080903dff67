// The image kernels' code (image_kernel.cu), as nvcc makes it for the driver to load.
#pragma once

#include <cstdint>
#include <span>

namespace headrace::device {

// Empty in a build without the CUDA Toolkit: chosen by link (image_code.cc, no_image_code.cc).
std::span<const uint8_t> ImageCode();

}  // namespace headrace::device
