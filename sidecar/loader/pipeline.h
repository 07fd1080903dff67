// A plan made ready to run on one worker: its files found, its data set built, its decoder chosen.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/spec/memory.h"
#include "common/spec/plan.h"
#include "sidecar/core/arena.h"
#include "sidecar/core/dataset.h"
#include "sidecar/decode/decoder.h"
#include "sidecar/loader/feed.h"
#include "sidecar/loader/signal.h"
#include "sidecar/loader/slot_layout.h"
#include "sidecar/source/source.h"

namespace headrace::side {

// Who does the last maps of images, where a GPU can (common/spec/gpu_images.h).
enum class LastMaps { kOnCpu, kOnGpu };

class Pipeline : public Feed {
 public:
  // Finds the files and checks what the plan demands of them and of the run. `run_id` seeds shuffles without a seed;
  // bad records that spec.onError leaves out are listed in the file `quarantine`; up to `threads` may decode; `signal`,
  // which must outlive the pipeline, is raised when there is more to be decoded. Errors: InvalidArgument, NotFound,
  // Unavailable, naming field, numbers and remedy.
  static Result<std::unique_ptr<Pipeline>> Create(Plan plan, const Topology& topology, const std::string& data_dir,
                                                  const std::string& run_id, const std::string& quarantine,
                                                  size_t threads, Signal* signal,
                                                  LastMaps last_maps = LastMaps::kOnCpu);

  Result<std::unique_ptr<FeedEpoch>> Start(const ring::Position& start) override;

  const Plan& plan() const override { return plan_; }
  const Topology& topology() const override { return topology_; }
  const std::vector<TensorSpec>& element_spec() const override { return element_spec_; }
  uint64_t max_bytes() const override { return layout_.max_bytes(); }
  std::span<const GpuImages> gpu_images() const override { return gpu_images_; }
  uint64_t max_device_bytes() const override { return layout_.max_device_bytes(); }
  bool holds_steps() const override { return holds_steps_; }
  int64_t cardinality() const override { return Cardinality(plan_.spec); }
  uint64_t run_seed() const override { return run_seed_; }
  uint64_t skipped_records() const override { return source_.quarantine.skipped(); }
  uint64_t bytes_read() const override { return source_.bytes_read.load(std::memory_order_relaxed); }
  StageTimes read_times() const override { return read_clock_.times(); }
  int64_t default_prefetch_steps() const override { return DefaultPrefetchSteps(static_cast<int64_t>(max_bytes())); }
  Result<bool> ReadsAll() override;
  void Stop() override;

 private:
  class Epoch;
  // What a thread that decodes has for itself.
  struct Desk {
    std::unique_ptr<Decoder> decoder;
    std::vector<uint8_t*> columns;
    std::vector<std::vector<BytesRef>> rows;  // of each component of variable length
    Arena kept;                               // values of such rows, where records are decoded one by one
  };

  Pipeline(Plan plan, const Topology& topology, uint64_t run_seed, size_t threads, Signal* signal, LastMaps last_maps);
  // In how many parts so many records are decoded.
  size_t Parts(size_t records) const;

  const Plan plan_;
  const Topology topology_;
  const Topology sharing_;
  const uint64_t run_seed_;
  const std::vector<GpuImages> gpu_images_;
  const InputSpec decoded_spec_;  // what is left to us of the plan's
  const SlotLayout layout_;
  const std::vector<TensorSpec> element_spec_;
  const bool holds_steps_;
  SourceContext source_;
  DatasetPtr<Batch> batches_;
  Signal* const signal_;
  StageClock read_clock_;
  std::vector<Desk> desks_;
};

// The seed that a text stands for: the same on every worker, never 0.
uint64_t SeedOf(const std::string& text);

}  // namespace headrace::side
