#include "cli/commands.h"

#include <cstdio>

namespace headrace::cli {

int Fail(const Status& status) {
  std::fprintf(stderr, "headrace: %s\n", status.message().c_str());
  return kExitFailure;
}

}  // namespace headrace::cli
