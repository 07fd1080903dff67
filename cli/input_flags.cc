#include "cli/input_flags.h"

namespace headrace::cli {

Result<SizedInput> ReadSizedInput(const CommandLine& line, const std::string& command) {
  const std::optional<std::string> file = line.Text("file");
  if (!file) return InvalidArgument(command + " needs -f FILE, for example -f examples/digits/input.yaml");
  ASSIGN_OR_RETURN(const auto workers, line.Integer("workers", 1));
  ASSIGN_OR_RETURN(const auto replicas, line.Integer("replicas", 1));
  ASSIGN_OR_RETURN(LocalInput input, LoadInput(*file, line.Text("input").value_or("")));
  const int64_t from_spec = input.plan.spec.distribution.replicas_per_worker.value_or(1);
  return SizedInput{*file, std::move(input), workers.value_or(1), replicas.value_or(from_spec)};
}

}  // namespace headrace::cli
