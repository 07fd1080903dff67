#include "sidecar/device/nccl.h"

#include <dlfcn.h>

#include <filesystem>

#include "sidecar/device/nccl_module.h"

namespace headrace::device {
namespace {

constexpr char kModule[] = "libheadrace_nccl.so";

// From beside the binary, else from the system's library path. Null if it is not there or lacks its libnccl.so.2.
void* OpenModule() {
  std::error_code error;
  const std::filesystem::path binary = std::filesystem::read_symlink("/proc/self/exe", error);
  void* module = dlopen((binary.parent_path().parent_path() / "lib" / kModule).c_str(), RTLD_NOW | RTLD_LOCAL);
  return module != nullptr ? module : dlopen(kModule, RTLD_NOW | RTLD_LOCAL);
}

}  // namespace

Result<int> NcclVersion() {
  // Never closed: NCCL starts threads that must not lose their code.
  static void* const module = OpenModule();
  if (module == nullptr) return NotFound("NCCL: libheadrace_nccl.so or its libnccl.so.2 is not beside this binary");
  const auto get_version = reinterpret_cast<decltype(&headrace_nccl_version)>(dlsym(module, "headrace_nccl_version"));
  if (get_version == nullptr) return Unavailable("NCCL: libheadrace_nccl.so is of another version of Headrace");

  int version = 0;
  if (const char* error = get_version(&version); error != nullptr) return Unavailable(std::string("NCCL: ") + error);
  return version;
}

std::string NcclVersionText(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version % 10000 / 100) + "." +
         std::to_string(version % 100);
}

}  // namespace headrace::device
