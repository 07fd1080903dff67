#include <cstdio>

#include "cli/commands.h"
#include "common/spec/names.h"

namespace headrace::cli {
namespace {

int RunVersion(const CommandLine&) {
  std::printf("headrace %s (%s/%s)\n", HEADRACE_VERSION, names::kGroup, names::kVersion);
  return 0;
}

}  // namespace

const Command kVersionCommand = {"version", "print the version",
                                 "",        "Prints the version of this command and of the objects it reads.\n",
                                 {},        RunVersion};

}  // namespace headrace::cli
