// The subcommands of `headrace`. Adding one: a file that defines its Command, a line here and a line in main.cc.
#pragma once

#include <span>
#include <string_view>

#include "cli/flags.h"

namespace headrace::cli {

struct Command {
  std::string_view name;
  std::string_view summary;    // one line
  std::string_view arguments;  // after the name in the usage line
  std::string_view help;       // what it does, with examples
  std::span<const Flag> flags;
  int (*run)(const CommandLine& line);  // returns the exit status
};

extern const Command kRunCommand;
extern const Command kExplainCommand;
extern const Command kBenchCommand;
extern const Command kIndexCommand;
extern const Command kTopCommand;
extern const Command kVerifyCommand;
extern const Command kInjectCommand;
extern const Command kVersionCommand;

// Exit statuses, beside 0 and those of a COMMAND: a failure, and a command line that cannot be understood.
inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;

// Prints "headrace: MESSAGE" to standard error and returns kExitFailure.
int Fail(const Status& status);

}  // namespace headrace::cli
