#include "sidecar/source/arrow.h"

#include "common/base/module.h"
#include "sidecar/source/arrow_module.h"

namespace headrace::side {

Result<std::string> ArrowVersion() {
  auto symbol = ModuleSymbol("libheadrace_arrow.so", "headrace_arrow_version");
  RETURN_IF_ERROR(symbol, "Apache Arrow");
  return std::string(reinterpret_cast<decltype(&headrace_arrow_version)>(*symbol)());
}

}  // namespace headrace::side
