// A plan: one input's spec, validated, defaulted and named by its hash; and what follows from it for a run of W workers
// with R replicas each, before any data is read: effective policy, warnings, element spec, cardinality.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "common/spec/input_spec.h"

namespace headrace {

struct Plan {
  InputSpec spec;
  std::string input;  // "namespace/name" or a file's name; for messages only, not part of the hash
  std::string hash;   // 16 hex digits of SHA-256 over the canonical JSON of the defaulted spec
  AutoShardPolicy effective_policy = AutoShardPolicy::kOff;  // Auto resolved: File if the source reads files, else Data
  std::vector<std::string> warnings;                         // e.g. that Auto became Data, and why
};

// The rules for pods, which local runs need not keep. Errors: InvalidArgument naming the field and the remedy.
Status CheckForPods(const InputSpec& spec);

// REQUIRES: `spec` came from ParseInputSpec. Cannot fail: all errors are ParseInputSpec's.
Plan CompilePlan(InputSpec spec, std::string input);

// plan.json: {"apiVersion","kind":"Plan","hash","input","spec","effectivePolicy","warnings"}.
nlohmann::json ToJson(const Plan& plan);
// Parses plan.json and checks that the hash still names the spec. Errors: InvalidArgument.
Result<Plan> ParsePlan(const nlohmann::json& plan);

// Why the plan's effective policy is what it is, and what it means, in words.
std::string PolicyReason(const Plan& plan);

// What a run adds to a plan. REQUIRES: 0 <= worker_index < num_workers, replicas_per_worker >= 1.
struct Topology {
  int64_t num_workers = 1;
  int64_t worker_index = 0;
  int64_t replicas_per_worker = 1;
  int64_t replicas_in_sync() const { return num_workers * replicas_per_worker; }
};

// The part of the run that shares each global batch, and agrees on where it ends: all of it, or under ParameterServer
// each worker by itself. Whatever follows from the number of workers or of replicas in sync follows from this one.
Topology SharingTopology(const Plan& plan, const Topology& topology);
// What may surprise in a run of this size, in words, beside the plan's own warnings.
std::vector<std::string> TopologyWarnings(const Plan& plan, const Topology& topology);

// The rules that need the size of the run: elements that cannot be split, File without files, strategy Mirrored with
// several workers, ... Errors: InvalidArgument naming the field, the numbers and the remedy.
Status CheckTopology(const Plan& plan, const Topology& run);

// Whether the workers of a run end their epochs together, after the same number of steps. TensorFlow's rule:
// tests/conformance/README.md, "End".
bool AgreesOnEnds(const Plan& plan, const Topology& topology);

inline constexpr int64_t kUnknownDim = -1;

// One component of an element.
struct TensorSpec {
  std::string name;
  DType dtype = DType::kInt64;
  std::vector<int64_t> shape;  // kUnknownDim where it can vary
  // Its length differs from record to record: the first dimension of a record, and so the second of a batch, which is a
  // RaggedTensor of ragged_rank 1. A string is never ragged: its length is no dimension.
  bool ragged = false;

  // As TensorFlow prints it: "TensorSpec(shape=(None, 8), dtype=tf.float32, name=None)",
  // "RaggedTensorSpec(TensorShape([None, None]), tf.int64, 1, tf.int64)".
  std::string ToString() const;
  bool operator==(const TensorSpec&) const = default;
};
// All components: one as it is, several in parentheses.
std::string ToString(const std::vector<TensorSpec>& element_spec);
nlohmann::json ToJson(const std::vector<TensorSpec>& element_spec);
// Errors: InvalidArgument, quoting the component.
Result<std::vector<TensorSpec>> ParseElementSpec(const nlohmann::json& element_spec);

// The type of one element at the end of the pipeline, before it is cut for replicas.
struct ElementShape {
  std::vector<TensorSpec> components;  // shapes include the batch dimensions
  int batch_dims = 0;                  // how many batch() calls
  bool endless = false;                // cardinality is infinite
};
ElementShape PipelineElement(const InputSpec& spec);

// The type of one replica's batch: conformance rule "element_spec".
std::vector<TensorSpec> ElementSpec(const Plan& plan, const Topology& run);

// Number of elements (global batches) of the whole pipeline, as tf.data's cardinality().
inline constexpr int64_t kInfiniteCardinality = -1;
inline constexpr int64_t kUnknownCardinality = -2;
int64_t Cardinality(const InputSpec& spec);
// Whether the elements never end: also those of an endless list of files, whose cardinality tf.data does not know.
bool IsEndless(const InputSpec& spec);

}  // namespace headrace
