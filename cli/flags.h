// The command line of a subcommand: flags with values, positional arguments, and what stands after "--".
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"

namespace headrace::cli {

struct Flag {
  std::string_view name;   // "workers" is given as --workers N or --workers=N
  std::string_view value;  // "N" as help shows it; empty: the flag takes no value
  std::string_view help;
  char letter = 0;  // 'f' is given as -f FILE
};

class CommandLine {
 public:
  // Errors: InvalidArgument that names the argument, with the nearest known flag.
  static Result<CommandLine> Parse(const std::vector<std::string>& arguments, std::span<const Flag> flags);

  bool Has(const std::string& flag) const { return values_.contains(flag); }
  std::optional<std::string> Text(const std::string& flag) const;
  // Errors: InvalidArgument unless it is an integer of at least `minimum`.
  Result<std::optional<int64_t>> Integer(const std::string& flag, int64_t minimum) const;
  const std::vector<std::string>& positional() const { return positional_; }
  const std::vector<std::string>& rest() const { return rest_; }  // after "--"

 private:
  std::map<std::string, std::string> values_;
  std::vector<std::string> positional_;
  std::vector<std::string> rest_;
};

}  // namespace headrace::cli
