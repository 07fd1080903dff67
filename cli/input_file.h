// A DistributedInput in a YAML file, compiled to a plan as the operator would.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "common/base/status.h"
#include "common/spec/plan.h"

namespace headrace::cli {

struct LocalInput {
  std::string name;  // metadata.name, or the file's name
  Plan plan;
  std::shared_ptr<const nlohmann::json> object;  // as written
  std::string data_directory;  // the file's folder, absolute: relative paths of the spec resolve against it
};

// Reads the DistributedInput in `path` ("-": standard input); other objects in the file are passed over. `name`
// chooses among several; empty: there must be one. Errors: InvalidArgument, every error of the spec on a line of its
// own with "file:line:col: ".
Result<LocalInput> LoadInput(const std::string& path, const std::string& name);

}  // namespace headrace::cli
