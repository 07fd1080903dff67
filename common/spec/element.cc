// What follows from a spec for the type and number of elements: tf.data's element_spec and cardinality().
#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/spec/components.h"
#include "common/spec/plan.h"

namespace headrace {
namespace {

using nlohmann::json;

// tf.data's cardinality of one transformation's output, given its input's.
struct CardinalityOf {
  int64_t n;

  bool Finite() const { return n >= 0; }
  int64_t operator()(const Shuffle&) const { return n; }
  int64_t operator()(const Enumerate&) const { return n; }
  int64_t operator()(const Prefetch&) const { return n; }
  int64_t operator()(const Map&) const { return n; }
  int64_t operator()(const Cache&) const { return n; }
  int64_t operator()(const Filter&) const { return n == 0 ? 0 : kUnknownCardinality; }
  int64_t operator()(const Pack&) const { return n <= 0 ? n : kUnknownCardinality; }
  int64_t operator()(const Interleave&) const { return n; }
  int64_t operator()(const Repeat& repeat) const {
    if (repeat.count == 0 || n == 0) return 0;
    if (repeat.count < 0) return kInfiniteCardinality;
    return Finite() ? n * repeat.count : n;
  }
  int64_t operator()(const Batch& batch) const {
    if (batch.buckets && n != kInfiniteCardinality) return kUnknownCardinality;  // in tf.data even of nothing
    if (!Finite()) return n;
    return batch.drop_remainder ? n / batch.size : (n + batch.size - 1) / batch.size;
  }
  int64_t operator()(const Take& take) const {
    if (take.count < 0) return n;
    if (n == kInfiniteCardinality) return take.count;
    return Finite() ? std::min(n, take.count) : n;
  }
  int64_t operator()(const Skip& skip) const {
    if (!Finite()) return n;  // in tf.data even where all are skipped
    return skip.count < 0 ? 0 : std::max<int64_t>(0, n - skip.count);
  }
  int64_t operator()(const Shard& shard) const {
    if (!Finite()) return n;
    if (shard.hint) return kUnknownCardinality;  // depends on the number of workers
    return n <= shard.index ? 0 : (n - shard.index + shard.num_shards - 1) / shard.num_shards;
  }
};

int64_t RangeCardinality(const RangeSource& range) {
  if (!range.stop) return kInfiniteCardinality;
  const int64_t span = range.step > 0 ? *range.stop - range.start : range.start - *range.stop;
  const int64_t step = range.step > 0 ? range.step : -range.step;
  return span <= 0 ? 0 : (span + step - 1) / step;
}

int64_t SourceCardinality(const Source& source) {
  if (const auto* range = std::get_if<RangeSource>(&source)) return RangeCardinality(*range);
  if (const auto* tensors = std::get_if<TensorsSource>(&source)) {
    return tensors->tensors.empty() ? 0 : tensors->tensors[0].shape[0];
  }
  // What files and functions give is known only by reading them. tf.data 2.21 says so of an endless list of files, too.
  return kUnknownCardinality;
}

int64_t After(const std::vector<Transformation>& pipeline, int64_t n) {
  for (const Transformation& transformation : pipeline) n = std::visit(CardinalityOf{n}, transformation);
  return n;
}

}  // namespace

int64_t Cardinality(const InputSpec& spec) { return After(spec.pipeline, SourceCardinality(spec.source)); }

bool IsEndless(const InputSpec& spec) {
  int64_t n = SourceCardinality(spec.source);
  if (const auto* files = std::get_if<FilesSource>(&spec.source)) n = After(files->pipeline, n);
  return After(spec.pipeline, n) == kInfiniteCardinality;
}

ElementShape PipelineElement(const InputSpec& spec) {
  ElementShape element{RecordComponents(spec, spec.pipeline.size(), nullptr), 0,
                       Cardinality(spec) == kInfiniteCardinality};
  for (const Transformation& transformation : spec.pipeline) {
    if (const auto* batch = std::get_if<Batch>(&transformation)) {
      ++element.batch_dims;
      for (TensorSpec& component : element.components) {
        const bool full = batch->drop_remainder && !batch->buckets && !spec.on_error.skip;
        component.shape.insert(component.shape.begin(), full ? batch->size : kUnknownDim);
      }
    }
  }
  // One record by itself is a tensor of the length that it has.
  if (element.batch_dims == 0) {
    for (TensorSpec& component : element.components) component.ragged = false;
  }
  return element;
}

std::vector<TensorSpec> ElementSpec(const Plan& plan, const Topology& run) {
  const Topology topology = SharingTopology(plan, run);
  ElementShape element = PipelineElement(plan.spec);
  const int64_t replicas = topology.replicas_in_sync();
  if (replicas == 1 || element.batch_dims == 0) return element.components;
  for (TensorSpec& component : element.components) {
    int64_t& dim = component.shape[0];
    const bool whole =
        element.endless || topology.num_workers == 1 || plan.spec.distribution.strategy == Strategy::kTpu;
    const bool stays_static = whole && dim != kUnknownDim && dim % replicas == 0;
    dim = stays_static ? dim / replicas : kUnknownDim;
  }
  return element.components;
}

}  // namespace headrace
