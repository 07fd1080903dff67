#include "sidecar/device/nccl.h"

#include "common/base/module.h"
#include "sidecar/device/nccl_module.h"

namespace headrace::device {

Result<int> NcclVersion() {
  auto symbol = ModuleSymbol("libheadrace_nccl.so", "headrace_nccl_version");
  RETURN_IF_ERROR(symbol, "NCCL");
  int version = 0;
  const auto get_version = reinterpret_cast<decltype(&headrace_nccl_version)>(*symbol);
  if (const char* error = get_version(&version); error != nullptr) return Unavailable(std::string("NCCL: ") + error);
  return version;
}

std::string NcclVersionText(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version % 10000 / 100) + "." +
         std::to_string(version % 100);
}

}  // namespace headrace::device
