#include "sidecar/loader/pipeline.h"

#include <algorithm>

#include "sidecar/core/random.h"
#include "sidecar/distribute/deal.h"
#include "sidecar/transform/batch.h"
#include "sidecar/transform/table.h"

namespace headrace::side {
namespace {

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

SlotLayout::SlotLayout(const Plan& plan, const Topology& topology) : element_(PipelineElement(plan.spec)) {
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
  for (const TensorSpec& component : element_.components) {
    uint64_t bytes = DTypeSize(component.dtype);
    for (size_t i = static_cast<size_t>(element_.batch_dims); i < component.shape.size(); ++i) {
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
  for (size_t c = 0; c < record_bytes_.size(); ++c) {
    const std::vector<int64_t>& shape = element_.components[c].shape;
    const uint64_t bytes = record_bytes_[c] * static_cast<uint64_t>(rows) * static_cast<uint64_t>(row_records);
    ring::ComponentExtent& extent =
        extents->emplace_back(ring::ComponentExtent{AlignTensor(end), bytes, shape.size(), {}});
    std::copy(shape.begin(), shape.end(), extent.dims);
    if (element_.batch_dims > 0) extent.dims[0] = rows;
    if (element_.batch_dims > 1) extent.dims[1] = row_records;
    end = extent.offset + bytes;
  }
  return end;
}

class Pipeline::Epoch : public FeedEpoch {
 public:
  Epoch(Pipeline& pipeline, Pass pass)
      : pipeline_(pipeline), deal_(pipeline.plan_, pipeline.sharing_, pipeline.batches_->Iterate(pass)) {}

  Status PassOverSteps(int64_t steps) { return deal_.PassOverSteps(steps); }

  Result<bool> Next(Delivery* delivery) override {
    ASSIGN_OR_RETURN(const bool more, deal_.Next(&dealt_));
    if (!more) return false;
    *delivery = {dealt_.step, dealt_.replica, dealt_.piece.rows, static_cast<int64_t>(dealt_.piece.records.size()),
                 dealt_.spare};
    return true;
  }

  Status Write(uint8_t* slot, uint64_t slot_bytes, std::vector<ring::ComponentExtent>* extents) override {
    const Piece& piece = dealt_.piece;
    const uint64_t bytes = pipeline_.layout_.Extents(piece.rows, piece.row_records, extents);
    if (bytes > slot_bytes) return Internal("a batch of " + std::to_string(bytes) + " bytes outgrew its slot");
    columns_.clear();
    for (const ring::ComponentExtent& extent : *extents) columns_.push_back(slot + extent.offset);
    return pipeline_.decoder_->Decode(piece.records, columns_);
  }

 private:
  Pipeline& pipeline_;
  Deal deal_;
  headrace::side::Delivery dealt_;
  std::vector<uint8_t*> columns_;
};

Pipeline::Pipeline(Plan plan, const Topology& topology, uint64_t run_seed)
    : plan_(std::move(plan)),
      topology_(topology),
      sharing_(SharingTopology(plan_, topology)),
      run_seed_(run_seed),
      layout_(plan_, sharing_),
      element_spec_(ElementSpec(plan_, topology)),
      holds_steps_(MayDropLastStep(sharing_, PipelineElement(plan_.spec).components)) {}

Result<std::unique_ptr<Pipeline>> Pipeline::Create(Plan plan, const Topology& topology, const std::string& data_dir,
                                                   const std::string& run_id) {
  RETURN_IF_ERROR(CheckTopology(plan, topology));
  // Workers that read everything by themselves should not all see it in one order.
  const bool alone = SharingTopology(plan, topology).num_workers < topology.num_workers;
  const uint64_t run_seed =
      SeedOf(plan.hash + run_id + (alone ? "/" + std::to_string(topology.worker_index) : std::string()));
  std::unique_ptr<Pipeline> pipeline(new Pipeline(std::move(plan), topology, run_seed));
  const Plan& made = pipeline->plan_;
  const TransformContext transform{pipeline->sharing_, &made.spec, &pipeline->source_.files.paths};
  if (const auto* files = std::get_if<FilesSource>(&made.spec.source)) {
    ASSIGN_OR_RETURN(pipeline->source_.files, ListFiles(*files, data_dir));
    pipeline->source_.compression = files->compression;
    RETURN_IF_ERROR(CheckFileCount(made, transform, pipeline->source_));
  }
  AnyDataset dataset = ApplyPipeline(transform, MakeSource(made, transform, &pipeline->source_));
  if (auto* records = std::get_if<DatasetPtr<Record>>(&dataset)) {
    pipeline->batches_ = MakeSingles(std::move(*records));
  } else {
    pipeline->batches_ = std::get<DatasetPtr<Batch>>(std::move(dataset));
  }
  pipeline->decoder_ = MakeDecoder(made.spec, made.spec.pipeline.size(), pipeline->source_.files.paths);
  return pipeline;
}

Result<std::unique_ptr<FeedEpoch>> Pipeline::Start(const ring::Position& start) {
  auto epoch = std::make_unique<Epoch>(*this, Pass{start.epoch, start.seed});
  RETURN_IF_ERROR(epoch->PassOverSteps(static_cast<int64_t>(start.step)));
  return std::unique_ptr<FeedEpoch>(std::move(epoch));
}

uint64_t SeedOf(const std::string& text) {
  uint64_t seed = 0;
  for (const char c : text) seed = Mix(seed, static_cast<unsigned char>(c));
  return seed == 0 ? 1 : seed;
}

}  // namespace headrace::side
