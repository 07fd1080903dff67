#include <cstdio>

#include "cli/commands.h"
#include "cli/injection.h"
#include "cli/yaml.h"

namespace headrace::cli {
namespace {

constexpr Flag kFlags[] = {
    {"file", "FILE", "YAML file with pods or workloads; - is standard input", 'f'},
    {"inputs", "FILE", "YAML file with their DistributedInputs (default: they are in -f FILE)", 0},
    {"loader-image", "IMAGE", "the loader's image (default: docker.io/headrace/loader of this version)", 0},
};

constexpr std::string_view kHelp =
    R"(Does the admission webhook's work on a file: prints its objects with the loader added to each pod
or pod template that has the label headrace.dev/input. Shows what the webhook will do, and serves
clusters where no webhook can be installed; the plan's ConfigMap still comes from the operator.

Examples:
  headrace inject -f examples/digits/job.yaml --inputs examples/digits/input.yaml
  kubectl get job digits -o yaml | headrace inject -f - --inputs input.yaml | diff - job.yaml
)";

Status InjectFile(const CommandLine& line) {
  const std::optional<std::string> file = line.Text("file");
  if (!file) return InvalidArgument("inject needs -f FILE, for example -f examples/digits/job.yaml");
  if (!line.positional().empty()) return InvalidArgument("unexpected argument \"" + line.positional()[0] + "\"");
  ASSIGN_OR_RETURN(const std::vector<YamlDocument> objects, ReadYamlFile(*file));
  InjectionOptions options;
  const std::optional<std::string> inputs = line.Text("inputs");
  if (!inputs && *file == "-") return InvalidArgument("-f - needs --inputs FILE");
  options.input_files = {inputs.value_or(*file)};
  options.loader_image = line.Text("loader-image").value_or("docker.io/headrace/loader:" HEADRACE_VERSION);
  ASSIGN_OR_RETURN(const Injection injection, Inject(objects, options));
  for (const std::string& note : injection.notes) std::fprintf(stderr, "%s\n", note.c_str());
  std::fputs(injection.yaml.c_str(), stdout);
  return Status();
}

int Run(const CommandLine& line) {
  const Status status = InjectFile(line);
  return status.ok() ? 0 : Fail(status);
}

}  // namespace

const Command kInjectCommand = {"inject",
                                "add the loader to the pods in a file, as the webhook does",
                                "-f FILE [--inputs FILE] [--loader-image IMAGE]",
                                kHelp,
                                kFlags,
                                Run};

}  // namespace headrace::cli
