// Conformance cases (tests/conformance/README.md): what a line of cases.jsonl means as a DistributedInput, and whether
// what the workers delivered is what it expects. Pure: nothing here starts a process.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace headrace::cli {

// One case, checked for the members that every kind of case needs. Immutable.
struct ConformanceCase {
  std::string name;
  std::string api;
  int64_t workers = 1;
  int64_t replicas_per_worker = 1;
  std::optional<int64_t> max_steps;
  bool also_as_optional = false;               // read a second time with get_next_as_optional
  std::shared_ptr<const nlohmann::json> json;  // the whole line
};

// Errors: InvalidArgument that names the member.
Result<ConformanceCase> ParseCase(const std::string& line);

// Contents of the case's files, one list of records each; empty unless the source is "files".
std::vector<std::vector<int64_t>> CaseFiles(const ConformanceCase& conformance_case);

// Where the parts of a case were written.
struct CasePaths {
  std::string conformance_case;    // the line itself
  std::vector<std::string> files;  // of CaseFiles
};

// The case as the object under a DistributedInput's "spec". A case of from_function becomes a function whose command is
// `program verify --serve` with the case. Errors: Unavailable "not supported: ..." for what the product cannot say.
Result<nlohmann::json> CaseSpec(const ConformanceCase& conformance_case, const CasePaths& paths,
                                const std::string& program);

// What one worker delivered.
struct WorkerObservation {
  std::string error;  // of connect or of a next(); empty if none
  // steps[s][r]: the records of replica r at step s, as in the cases.
  std::shared_ptr<nlohmann::json> steps;
  std::shared_ptr<nlohmann::json> optional_steps;  // null unless also_as_optional
  std::string element_spec;                        // TensorFlow's print
  std::string policy;                              // "Data"
  std::vector<std::string> warnings;
  std::shared_ptr<nlohmann::json> context;  // tf.distribute.InputContext, with the case's per-replica batch size
  std::shared_ptr<nlohmann::json> values;   // of api values_from_function: one for each replica
};

// What differs from the case, one "what: expected X, got Y" each; empty if the case passes.
std::vector<std::string> CompareCase(const ConformanceCase& conformance_case,
                                     const std::vector<WorkerObservation>& workers);

}  // namespace headrace::cli
