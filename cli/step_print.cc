#include "cli/step_print.h"

#include <algorithm>

namespace headrace::cli {
namespace {

// "([0 1], [2 3])": component c of each replica; one replica stands without parentheses.
std::string PrintComponent(const WorkerStep& batches, size_t c) {
  std::string text;
  for (const std::optional<ReplicaBatch>& batch : batches) {
    if (!text.empty()) text += ", ";
    text += batch && c < batch->tensors.size() ? PrintArray(batch->tensors[c]) : "[]";
  }
  return batches.size() == 1 ? text : "(" + text + ")";
}

// All components of a worker's replicas are the same; one that ended has none to show.
const ReplicaBatch* AnyBatch(const WorkerStep& batches) {
  for (const std::optional<ReplicaBatch>& batch : batches) {
    if (batch) return &*batch;
  }
  return nullptr;
}

}  // namespace

std::string PrintStep(int64_t step, int64_t worker, int64_t num_workers, const WorkerStep& batches) {
  std::string label = "step " + std::to_string(step) + "  ";
  if (num_workers > 1) {
    // Under the first worker's line, the others are indented, so that a step reads as one block.
    if (worker > 0) label = std::string(label.size(), ' ');
    label += "worker " + std::to_string(worker) + "  ";
  }
  const ReplicaBatch* any = AnyBatch(batches);
  const size_t components = any == nullptr ? 1 : any->tensors.size();
  if (components <= 1) return label + PrintComponent(batches, 0) + "\n";
  size_t width = 0;
  for (const TensorView& tensor : any->tensors) width = std::max(width, tensor.name.size());
  std::string text;
  for (size_t c = 0; c < components; ++c) {
    const std::string& name = any->tensors[c].name;
    text += (c == 0 ? label : std::string(label.size(), ' ')) + name + std::string(width - name.size() + 2, ' ') +
            PrintComponent(batches, c) + "\n";
  }
  return text;
}

}  // namespace headrace::cli
