#include "sidecar/device/device.h"

namespace headrace::device {

std::string HostReason(const Report& report) {
  if (report.runtime_version == 0) return "Host: this build is without CUDA";
  if (report.driver_version == 0) return "Host: no CUDA driver in this process";
  if (!report.gpu_error.empty()) return "Host: the CUDA driver gives no GPU: " + report.gpu_error;
  if (report.gpus.empty()) return "Host: the CUDA driver sees no GPU";
  return "Host: this version delivers to host memory only";
}

std::string CudaVersionText(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

}  // namespace headrace::device
