// The webhook's work on objects in files: pods and workloads that ask for an input, with their loader added.
#pragma once

#include <string>
#include <vector>

#include "cli/yaml.h"
#include "common/base/status.h"

namespace headrace::cli {

struct InjectionOptions {
  std::vector<std::string> input_files;  // where the DistributedInputs are
  std::string loader_image;
};

struct Injection {
  std::string yaml;                // all objects, one document each
  std::vector<std::string> notes;  // what was done to each object that asked for an input
};

// Adds the loader to each Pod, and to the pod template of each workload (an object with spec.template), that has the
// label headrace.dev/input; other objects pass unchanged. Errors: InvalidArgument and NotFound with the object's place.
Result<Injection> Inject(const std::vector<YamlDocument>& objects, const InjectionOptions& options);

}  // namespace headrace::cli
