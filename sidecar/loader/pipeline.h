// A plan made ready to run on one worker: its files found, its data set built, its decoder chosen.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/ring/writer.h"
#include "common/spec/plan.h"
#include "sidecar/core/dataset.h"
#include "sidecar/decode/decoder.h"
#include "sidecar/source/source.h"

namespace headrace::side {

// How a batch of `rows` rows lies in a slot: component after component, each aligned to ring::kTensorAlign.
class SlotLayout {
 public:
  SlotLayout(const Plan& plan, const Topology& topology);

  // Fills one extent for each component and returns the bytes used.
  uint64_t Extents(int64_t rows, int64_t row_records, std::vector<ring::ComponentExtent>* extents) const;
  uint64_t max_bytes() const { return max_bytes_; }  // of the largest batch that the plan allows
  size_t components() const { return record_bytes_.size(); }
  int batch_dims() const { return batch_dims_; }

 private:
  std::vector<uint64_t> record_bytes_;  // of one record, by component
  uint64_t max_bytes_ = 0;
  int batch_dims_ = 0;
};

class Pipeline {
 public:
  // Finds the files and checks what the plan demands of them and of the run. `run_id` seeds shuffles without a seed.
  // Errors: InvalidArgument, NotFound, Unavailable, naming field, numbers and remedy.
  static Result<std::unique_ptr<Pipeline>> Create(Plan plan, const Topology& topology, const std::string& data_dir,
                                                  const std::string& run_id);

  // The batches of one epoch, before they are cut. At most one stream at a time; the pipeline must outlive it.
  std::unique_ptr<Stream<Batch>> Iterate(uint64_t epoch) const;

  const Plan& plan() const { return plan_; }
  const Topology& topology() const { return topology_; }
  const SlotLayout& layout() const { return layout_; }
  Decoder& decoder() { return *decoder_; }
  const SourceContext& source() const { return source_; }

 private:
  Pipeline(Plan plan, const Topology& topology);

  const Plan plan_;
  const Topology topology_;
  const SlotLayout layout_;
  SourceContext source_;
  DatasetPtr<Batch> batches_;
  std::unique_ptr<Decoder> decoder_;
};

}  // namespace headrace::side
