#include "cli/step_print.h"

#include <algorithm>

#include "cli/tensor_print.h"

namespace headrace::cli {
namespace {

// "([0 1], [2 3])": component c of each replica; one replica stands without parentheses.
std::string PrintComponent(int64_t replicas, const WorkerStep& batches, size_t c) {
  std::string text;
  for (size_t r = 0; r < static_cast<size_t>(replicas); ++r) {
    if (r > 0) text += ", ";
    text += r < batches.size() ? PrintTensor(batches[r].tensors[c]) : "[]";
  }
  return replicas == 1 ? text : "(" + text + ")";
}

}  // namespace

std::string PrintStep(const StepPlace& place, const WorkerStep& batches) {
  std::string label = "step " + std::to_string(place.step) + "  ";
  if (place.num_workers > 1) {
    if (place.worker > 0) label = std::string(label.size(), ' ');
    label += "worker " + std::to_string(place.worker) + "  ";
  }
  const size_t components = batches.empty() ? 1 : batches[0].tensors.size();
  if (components == 1) return label + PrintComponent(place.replicas_per_worker, batches, 0) + "\n";
  size_t width = 0;
  for (const TensorView& tensor : batches[0].tensors) width = std::max(width, tensor.name.size());
  std::string text;
  for (size_t c = 0; c < components; ++c) {
    const std::string& name = batches[0].tensors[c].name;
    text += (c == 0 ? label : std::string(label.size(), ' ')) + name + std::string(width - name.size() + 2, ' ') +
            PrintComponent(place.replicas_per_worker, batches, c) + "\n";
  }
  return text;
}

}  // namespace headrace::cli
