#include "common/base/module.h"

#include <dlfcn.h>

#include <filesystem>

namespace headrace {

Result<void*> ModuleSymbol(const std::string& module, const char* symbol) {
  std::error_code error;
  const std::filesystem::path binary = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path beside = binary.parent_path().parent_path() / "lib" / module;
  // The reason why one beside the binary cannot be opened is worth more than that the system has none.
  const bool is_beside = std::filesystem::exists(beside, error);
  void* handle = dlopen(is_beside ? beside.c_str() : module.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return NotFound(dlerror());
  void* found = dlsym(handle, symbol);
  if (found == nullptr) return Unavailable(module + " is of another version of Headrace: it has no " + symbol);
  return found;
}

}  // namespace headrace
