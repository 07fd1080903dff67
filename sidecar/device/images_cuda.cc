// Images on the GPU where the CUDA Toolkit is there (no_cuda.cc is its counterpart).
#include "sidecar/device/image_kernel.h"
#include "sidecar/device/images.h"

namespace headrace::device {

Status EnqueueImages(const PixelProgram& program, gpu::DevicePtr images, int64_t count, gpu::DevicePtr out,
                     gpu::Stream stream) {
  // NOLINTBEGIN(performance-no-int-to-ptr): the runtime's pointers are the driver's numbers
  const cudaError_t error =
      LaunchImageKernel(program, reinterpret_cast<const void*>(images), count, reinterpret_cast<void*>(out), stream);
  // NOLINTEND(performance-no-int-to-ptr)
  if (error == cudaSuccess) return {};
  return Unavailable(std::string("the image kernel: ") + cudaGetErrorName(error) + ": " + cudaGetErrorString(error));
}

}  // namespace headrace::device
