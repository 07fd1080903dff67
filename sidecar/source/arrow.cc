#include "sidecar/source/arrow.h"

#include "common/base/module.h"
#include "sidecar/source/arrow_module.h"

namespace headrace::side {

namespace {

constexpr char kModule[] = "libheadrace_arrow.so";

}  // namespace

Result<std::string> ArrowVersion() {
  auto symbol = ModuleSymbol(kModule, "headrace_arrow_version");
  RETURN_IF_ERROR(symbol, "Apache Arrow");
  return std::string(reinterpret_cast<decltype(&headrace_arrow_version)>(*symbol)());
}

Result<const ColumnsReaders*> ArrowReaders() {
  auto symbol = ModuleSymbol(kModule, "headrace_arrow_readers");
  RETURN_IF_ERROR(symbol, "Apache Arrow, which reads Parquet and Arrow files");
  return reinterpret_cast<decltype(&headrace_arrow_readers)>(*symbol)();
}

}  // namespace headrace::side
