#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/explanation.h"
#include "cli/input_file.h"

namespace headrace::cli {
namespace {

constexpr Flag kFlags[] = {
    {"file", "FILE", "YAML file with the DistributedInput; - is standard input", 'f'},
    {"input", "NAME", "which one, if the file holds several", 0},
    {"workers", "N", "number of workers (default 1)", 'w'},
    {"replicas", "N", "replicas a worker (default: spec.distribution.replicasPerWorker, else 1)", 'r'},
    {"output", "FORMAT", "text (default) or json", 'o'},
};

constexpr std::string_view kHelp =
    R"(Prints what an input means for a run of a given size, without reading a record: the policy that
takes effect and why, the files of each worker, how a batch is cut, steps, the type of one
replica's batch, memory, warnings. Fails where such a run would be refused.

Examples:
  headrace explain -f examples/digits/input.yaml --workers 2
  headrace explain -f input.yaml --workers 8 --replicas 8 -o json
)";

Status ExplainInput(const CommandLine& line) {
  const std::optional<std::string> file = line.Text("file");
  if (!file) return InvalidArgument("explain needs -f FILE, for example -f examples/digits/input.yaml");
  const std::string output = line.Text("output").value_or("text");
  if (output != "text" && output != "json") return InvalidArgument("-o " + output + ": must be text or json");
  if (!line.positional().empty()) return InvalidArgument("unexpected argument \"" + line.positional()[0] + "\"");
  ASSIGN_OR_RETURN(const auto workers, line.Integer("workers", 1));
  ASSIGN_OR_RETURN(const auto replicas, line.Integer("replicas", 1));
  ASSIGN_OR_RETURN(const LocalInput input, LoadInput(*file, line.Text("input").value_or("")));
  const int64_t from_spec = input.plan.spec.distribution.replicas_per_worker.value_or(1);
  Result<nlohmann::json> explanation = Explain(input, workers.value_or(1), replicas.value_or(from_spec));
  RETURN_IF_ERROR(explanation.status(), *file);
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
