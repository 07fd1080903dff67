#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/explanation.h"
#include "cli/input_flags.h"

namespace headrace::cli {
namespace {

constexpr auto kFlags = WithInputFlags({
    {"output", "FORMAT", "text (default) or json", 'o'},
});

constexpr std::string_view kHelp =
    R"(Prints what an input means for a run of a given size, without reading a record: the policy that
takes effect and why, the files of each worker, how a batch is cut, steps, the type of one
replica's batch, memory, warnings. Fails where such a run would be refused.

Examples:
  headrace explain -f examples/digits/input.yaml --workers 2
  headrace explain -f input.yaml --workers 8 --replicas 8 -o json
)";

Status ExplainInput(const CommandLine& line) {
  const std::string output = line.Text("output").value_or("text");
  if (output != "text" && output != "json") return InvalidArgument("-o " + output + ": must be text or json");
  if (!line.positional().empty()) return InvalidArgument("unexpected argument \"" + line.positional()[0] + "\"");
  ASSIGN_OR_RETURN(const SizedInput sized, ReadSizedInput(line, "explain"));
  Result<nlohmann::json> explanation = Explain(sized.input, sized.workers, sized.replicas);
  RETURN_IF_ERROR(explanation.status(), sized.file);
  std::printf("%s", output == "json" ? (explanation->dump(2) + "\n").c_str() : PrintExplanation(*explanation).c_str());
  return Status();
}

int Run(const CommandLine& line) {
  const Status status = ExplainInput(line);
  return status.ok() ? 0 : Fail(status);
}

}  // namespace

const Command kExplainCommand = {"explain",
                                 "say what an input means: policy, shards, steps, types, memory, warnings",
                                 "-f FILE [--workers N] [--replicas N] [-o json]",
                                 kHelp,
                                 kFlags,
                                 Run};

}  // namespace headrace::cli
