#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/input_flags.h"
#include "cli/interrupt.h"
#include "cli/loaders.h"
#include "cli/process.h"
#include "common/spec/names.h"

namespace headrace::cli {
namespace {

constexpr std::array kFlags = {kInputFlags[0], kInputFlags[1]};  // the file, and which input of it

constexpr std::string_view kHelp =
    R"(Reads the input's files once and keeps beside each where its records begin, in DIR/.headrace/NAME.index:
8 bytes a record. Files whose index is there and right are passed over.

With it, workers that share files under policy Data read only what they deliver, from the first epoch
on; without it they find out in the first epoch, which each of them reads whole. A shuffle with scope
Global starts at once.

For TFRecord, Text, CSV, JSONLines and WebDataset files of a mounted volume that are not compressed;
other formats say themselves where their records lie. Run it where the volume can be written to: in
the pods it is mounted read-only.

Example:
  headrace index -f input.yaml
)";

Result<int> IndexInput(const CommandLine& line) {
  if (!line.positional().empty()) return InvalidArgument("unexpected argument \"" + line.positional()[0] + "\"");
  const std::optional<std::string> file = line.Text("file");
  if (!file) return InvalidArgument("index needs -f FILE, for example -f examples/digits/input.yaml");
  ASSIGN_OR_RETURN(const LocalInput input, LoadInput(*file, line.Text("input").value_or("")));
  ASSIGN_OR_RETURN(const ScratchDirectory directory, ScratchDirectory::Make("headrace-index-"));
  const std::string plan = directory.path() + "/" + names::kPlanFile;
  RETURN_IF_ERROR(WritePlan(input.plan, plan));
  CatchInterrupts();
  ProcessOptions options;
  options.argv = {SiblingBinary("headrace-loader"), "--index"};
  options.environment = {{names::kEnvPlan, plan}, {names::kEnvDataDir, input.data_directory}};
  ASSIGN_OR_RETURN(Process loader, Process::Start(options));
  while (true) {
    if (const auto status = loader.Wait(100)) return *status;
    if (Interrupted() != 0) return 128 + Interrupted();
  }
}

int RunIndex(const CommandLine& line) {
  const Result<int> status = IndexInput(line);
  return status.ok() ? *status : Fail(status.status());
}

}  // namespace

const Command kIndexCommand = {
    "index", "keep beside files where their records begin", "-f FILE [--input NAME]", kHelp, kFlags, RunIndex};

}  // namespace headrace::cli
