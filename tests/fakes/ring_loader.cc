// The fake loader as a process of its own, which tests start and kill:
//   ring_loader DIRECTORY [name=value ...]     names as in FakeLoaderOptions
// Prints "ready" once it serves; ends when its standard input does, so that it never outlives the test.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/fakes/fake_loader.h"

int main(int argc, char** argv) {
  headrace::fakes::FakeLoaderOptions options;
  if (argc < 2) return 2;
  options.directory = argv[1];
  for (int i = 2; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t equals = argument.find('=');
    if (equals == std::string::npos) return 2;
    const std::string name = argument.substr(0, equals);
    const std::string value = argument.substr(equals + 1);
    const int64_t number = std::strtoll(value.c_str(), nullptr, 10);
    if (name == "replicas") {
      options.replicas = number;
    } else if (name == "num_workers") {
      options.num_workers = number;
    } else if (name == "worker_index") {
      options.worker_index = number;
    } else if (name == "rows") {
      options.rows = number;
    } else if (name == "steps") {
      options.steps = number;
    } else if (name == "slots") {
      options.slots = static_cast<uint64_t>(number);
    } else if (name == "plan_hash") {
      options.plan_hash = value;
    } else if (name == "partial_last_step") {
      options.partial_last_step = number != 0;
    } else if (name == "all_dtypes") {
      options.all_dtypes = number != 0;
    } else if (name == "variable") {
      options.variable = number != 0;
    } else if (name == "memory") {
      options.memory = headrace::ParseMemoryKind(value).value_or(headrace::MemoryKind::kAuto);
    } else if (name == "fail_at_step") {
      options.fail_at_step = number;
    } else if (name == "pause_at_step") {
      options.pause_at_step = number;
    } else if (name == "error") {
      options.error = value;
    } else {
      std::fprintf(stderr, "ring_loader: no option '%s'\n", name.c_str());
      return 2;
    }
  }
  auto loader = headrace::fakes::FakeLoader::Start(options);
  if (!loader.ok()) {
    std::fprintf(stderr, "ring_loader: %s\n", loader.status().ToString().c_str());
    return 1;
  }
  std::puts("ready");
  std::fflush(stdout);
  char byte;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
  return 0;
}
