#include "sidecar/device/device.h"

namespace headrace::device {

std::string GpuText(const Report& report) {
  if (report.runtime_version == 0) return "this build is without CUDA";
  if (report.driver_version == 0) return "no CUDA driver in this process";
  if (!report.gpu_error.empty()) return "the CUDA driver gives no GPU: " + report.gpu_error;
  if (report.gpus.empty()) return "the CUDA driver sees no GPU";
  return std::to_string(report.gpus.size()) + (report.gpus.size() == 1 ? " GPU" : " GPUs");
}

std::string CudaVersionText(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

}  // namespace headrace::device
