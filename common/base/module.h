// Modules: shared libraries of ours for what most processes never need, opened when it is first asked for.
#pragma once

#include <string>

#include "common/base/status.h"

namespace headrace {

// The function or table that `module`, as in "libheadrace_nccl.so", exports as `symbol`. Opens the module at its first
// use, from ../lib beside this binary, else from the system's library path, and keeps it open: what it links may run
// threads that must not lose their code. Any thread. Errors: NotFound with the linker's reason if the module or a
// library that it needs is not there, Unavailable if it lacks the symbol.
Result<void*> ModuleSymbol(const std::string& module, const char* symbol);

}  // namespace headrace
