#include "sidecar/device/nccl.h"

#include <dlfcn.h>

#include <cstdlib>

#include "common/base/module.h"
#include "sidecar/device/nccl_module.h"

namespace headrace::device {
namespace {

Result<void*> Symbol(const char* name) {
  // The module asks for libnccl.so.2: one that is open by then is taken.
  if (const char* const library = std::getenv(kNcclLibraryEnv); library != nullptr && *library != '\0') {
    if (dlopen(library, RTLD_NOW | RTLD_GLOBAL) == nullptr) return NotFound(std::string("NCCL: ") + dlerror());
  }
  auto symbol = ModuleSymbol("libheadrace_nccl.so", name);
  RETURN_IF_ERROR(symbol, "NCCL");
  return symbol;
}

}  // namespace

Result<int> NcclVersion() {
  ASSIGN_OR_RETURN(void* const symbol, Symbol("headrace_nccl_version"));
  int version = 0;
  const auto get_version = reinterpret_cast<decltype(&headrace_nccl_version)>(symbol);
  if (const char* error = get_version(&version); error != nullptr) return Unavailable(std::string("NCCL: ") + error);
  return version;
}

std::string NcclVersionText(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version % 10000 / 100) + "." +
         std::to_string(version % 100);
}

Result<std::unique_ptr<side::Exchange>> OpenNcclExchange(const side::ExchangeOptions& options) {
  ASSIGN_OR_RETURN(void* const symbol, Symbol("headrace_nccl_functions"));
  return reinterpret_cast<decltype(&headrace_nccl_functions)>(symbol)()->make_exchange(options);
}

}  // namespace headrace::device
