#include <array>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "common/base/words.h"

namespace headrace::cli {
namespace {

constexpr std::array kCommands = {&kRunCommand,   &kExplainCommand, &kBenchCommand,  &kTopCommand,
                                  &kIndexCommand, &kVerifyCommand,  &kInjectCommand, &kVersionCommand};

int PrintHelp(std::FILE* out) {
  std::fprintf(out,
               "Headrace brings batches to trainers: one DistributedInput object says what is read, how it is\n"
               "sharded over workers and cut for replicas. This command tries one without a cluster.\n\n"
               "Usage: headrace COMMAND [FLAGS]\n\nCommands:\n");
  for (const Command* command : kCommands) {
    std::fprintf(out, "  %-9s %s\n", std::string(command->name).c_str(), std::string(command->summary).c_str());
  }
  std::fprintf(out,
               "\nStart here:\n"
               "  headrace run -f examples/digits/input.yaml --workers 2      what each replica gets\n"
               "  headrace explain -f examples/digits/input.yaml --workers 2  why\n"
               "\n`headrace COMMAND --help` says more, with examples.\n");
  return out == stdout ? 0 : kExitUsage;
}

int PrintCommandHelp(const Command& command) {
  std::printf("Usage: headrace %s %s\n\n%s\nFlags:\n", std::string(command.name).c_str(),
              std::string(command.arguments).c_str(), std::string(command.help).c_str());
  for (const Flag& flag : command.flags) {
    std::string left = flag.letter != 0 ? std::string("-") + flag.letter + ", " : "    ";
    left += "--" + std::string(flag.name) + (flag.value.empty() ? "" : " ") + std::string(flag.value);
    std::printf("  %-24s %s\n", left.c_str(), std::string(flag.help).c_str());
  }
  std::printf("  %-24s %s\n", "-h, --help", "this text");
  return 0;
}

int UnknownCommand(const std::string& name) {
  std::vector<std::string_view> names;
  for (const Command* command : kCommands) names.push_back(command->name);
  const std::string nearest = NearestName(name, names);
  std::fprintf(
      stderr, "headrace: unknown command \"%s\"%s\n", name.c_str(),
      nearest.empty() ? "; `headrace --help` lists them" : (": did you mean `headrace " + nearest + "`?").c_str());
  return kExitUsage;
}

bool AsksForHelp(const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    if (argument == "--") return false;
    if (argument == "--help" || argument == "-h") return true;
  }
  return false;
}

int Main(const std::vector<std::string>& arguments) {
  if (arguments.empty()) return PrintHelp(stderr);
  const std::string& name = arguments[0];
  if (name == "--help" || name == "-h" || name == "help") return PrintHelp(stdout);
  for (const Command* command : kCommands) {
    if (command->name != (name == "--version" ? "version" : name)) continue;
    const std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
    if (AsksForHelp(rest)) return PrintCommandHelp(*command);
    const Result<CommandLine> line = CommandLine::Parse(rest, command->flags);
    if (line.ok()) return command->run(*line);
    std::fprintf(stderr, "headrace %s: %s\n`headrace %s --help` shows its flags\n", name.c_str(),
                 line.status().message().c_str(), name.c_str());
    return kExitUsage;
  }
  return UnknownCommand(name);
}

}  // namespace

}  // namespace headrace::cli

int main(int argc, char** argv) {
  try {
    return headrace::cli::Main(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "headrace: %s\n", e.what());
    return headrace::cli::kExitFailure;
  }
}
