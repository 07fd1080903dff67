// The device library where there is no CUDA Toolkit (cuda.cc is its counterpart).
#include "sidecar/device/device.h"
#include "sidecar/device/images.h"

namespace headrace::device {

Report Probe() { return {}; }

Status CheckGpu(int index) { return NotFound("GPU " + std::to_string(index) + ": this build is without CUDA"); }

Status EnqueueImages(const PixelProgram&, gpu::DevicePtr, int64_t, gpu::DevicePtr, gpu::Stream) {
  return Unavailable("images on the GPU: this build is without CUDA");
}

}  // namespace headrace::device
