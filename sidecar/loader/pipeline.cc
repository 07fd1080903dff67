#include "sidecar/loader/pipeline.h"

#include <algorithm>

#include "sidecar/core/random.h"
#include "sidecar/transform/batch.h"
#include "sidecar/transform/table.h"

namespace headrace::side {
namespace {

uint64_t SeedOf(const std::string& text) {
  uint64_t seed = 0;
  for (const char c : text) seed = Mix(seed, static_cast<unsigned char>(c));
  return seed;
}

DatasetPtr<Record> MakeSource(const Plan& plan, const TransformContext& transform, SourceContext* context) {
  if (const auto* range = std::get_if<RangeSource>(&plan.spec.source)) return MakeRange(*range);
  if (const auto* tensors = std::get_if<TensorsSource>(&plan.spec.source)) {
    return MakeRows(tensors->tensors[0].shape[0]);
  }
  Interleave interleave;
  if (!plan.spec.pipeline.empty()) {
    if (const auto* first = std::get_if<Interleave>(&plan.spec.pipeline[0])) interleave = *first;
  }
  // With one file open at a time the block length changes no order: read as much at once as is asked for.
  if (interleave.cycle_length == 1) interleave.block_length = INT64_MAX;
  return ReadFiles(MakeFileList(plan, transform, *context), interleave,
                   ReaderOf(std::get<FilesSource>(plan.spec.source).format), context);
}

}  // namespace

SlotLayout::SlotLayout(const Plan& plan, const Topology& topology) {
  int64_t rows = 1;         // of the largest batch: the last batch's size ...
  int64_t row_records = 1;  // ... and that of the one before it
  for (const Transformation& transformation : plan.spec.pipeline) {
    if (const auto* batch = std::get_if<headrace::Batch>(&transformation)) {
      row_records = rows;
      rows = batch->size;
    }
  }
  const int64_t replicas = topology.replicas_in_sync();
  rows = (rows + replicas - 1) / replicas;
  const ElementShape element = PipelineElement(plan.spec);
  batch_dims_ = element.batch_dims;
  for (const TensorSpec& component : element.components) {
    uint64_t bytes = DTypeSize(component.dtype);
    for (size_t i = static_cast<size_t>(element.batch_dims); i < component.shape.size(); ++i) {
      bytes *= static_cast<uint64_t>(component.shape[i]);
    }
    record_bytes_.push_back(bytes);
  }
  std::vector<ring::ComponentExtent> extents;
  max_bytes_ = Extents(rows, row_records, &extents);
}

uint64_t SlotLayout::Extents(int64_t rows, int64_t row_records, std::vector<ring::ComponentExtent>* extents) const {
  extents->clear();
  uint64_t end = 0;
  for (const uint64_t record_bytes : record_bytes_) {
    const uint64_t begin = (end + ring::kTensorAlign - 1) / ring::kTensorAlign * ring::kTensorAlign;
    const uint64_t bytes = record_bytes * static_cast<uint64_t>(rows) * static_cast<uint64_t>(row_records);
    extents->push_back({begin, bytes});
    end = begin + bytes;
  }
  return end;
}

Pipeline::Pipeline(Plan plan, const Topology& topology)
    : plan_(std::move(plan)), topology_(topology), layout_(plan_, topology) {}

Result<std::unique_ptr<Pipeline>> Pipeline::Create(Plan plan, const Topology& topology, const std::string& data_dir,
                                                   const std::string& run_id) {
  RETURN_IF_ERROR(CheckTopology(plan, topology));
  std::unique_ptr<Pipeline> pipeline(new Pipeline(std::move(plan), topology));
  const Plan& made = pipeline->plan_;
  const TransformContext transform{topology, SeedOf(made.hash + run_id)};
  if (const auto* files = std::get_if<FilesSource>(&made.spec.source)) {
    ASSIGN_OR_RETURN(pipeline->source_.files, ListFiles(*files, data_dir));
    pipeline->source_.compression = files->compression;
    RETURN_IF_ERROR(CheckFileCount(made, transform, pipeline->source_));
  }
  AnyDataset dataset =
      ApplyPipeline(made.spec.pipeline, "spec.pipeline", transform, MakeSource(made, transform, &pipeline->source_));
  if (auto* records = std::get_if<DatasetPtr<Record>>(&dataset)) {
    pipeline->batches_ = MakeSingles(std::move(*records));
  } else {
    pipeline->batches_ = std::get<DatasetPtr<Batch>>(std::move(dataset));
  }
  pipeline->decoder_ = MakeDecoder(made, pipeline->source_.files.paths);
  return pipeline;
}

std::unique_ptr<Stream<Batch>> Pipeline::Iterate(uint64_t epoch) const { return batches_->Iterate({epoch}); }

}  // namespace headrace::side
