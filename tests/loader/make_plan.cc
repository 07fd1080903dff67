// Makes a plan of a spec, for loaders that are started by tests and benchmarks in Python, without the operator or the
// command-line tool:
//   make_plan < spec.json > plan.json
#include <iostream>
#include <nlohmann/json.hpp>

#include "common/spec/plan.h"

int main() {
  const nlohmann::json json = nlohmann::json::parse(std::cin, nullptr, /*allow_exceptions=*/false);
  auto spec = headrace::ParseInputSpec(json);
  if (!spec.ok()) {
    std::cerr << "make_plan: " << spec.status().ToString() << "\n";
    return 1;
  }
  std::cout << headrace::ToJson(headrace::CompilePlan(std::move(*spec), "tests/input")).dump() << "\n";
  return 0;
}
