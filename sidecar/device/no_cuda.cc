// The device library where there is no CUDA Toolkit (cuda.cc is its counterpart).
#include "sidecar/device/device.h"

namespace headrace::device {

Report Probe() { return {}; }

Status CheckGpu(int index) { return NotFound("GPU " + std::to_string(index) + ": this build is without CUDA"); }

}  // namespace headrace::device
