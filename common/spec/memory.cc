#include "common/spec/memory.h"

#include <algorithm>

#include "common/spec/collective.h"
#include "common/spec/components.h"
#include "common/spec/tensor_fields.h"
#include "common/spec/variable.h"

namespace headrace {
namespace {

// What the loader has, which the tests of tests/bench measure; the rest follows from its constants.
constexpr int64_t kProgram = int64_t{24} << 20;
constexpr int64_t kBlock = 256 << 10;                 // BytesBlockPool
constexpr int64_t kDecompressed = 768 << 10;          // ahead of each compressed file
constexpr int64_t kRowGroup = int64_t{24} << 20;      // of each Parquet file: what is read of one, and its pages
constexpr int64_t kRemoteAhead = int64_t{128} << 20;  // ReadAhead, all files together
constexpr int64_t kPieces = int64_t{4} << 20;         // LookAhead: as many batches, and at least two steps' ...
constexpr int64_t kVariablePieces = 4 * kPieces;      // ... and if rows differ in length
constexpr int64_t kUncompacted = int64_t{64} << 20;   // Compaction: blocks are left alone up to there
constexpr double kScattered = 2.5;                    // ... and take so many times their records beyond
constexpr int64_t kExchangeBuffers = 4;               // SharedFeed; worker 0 has one for each worker that gets its own
constexpr int64_t kSlotsBeyondPrefetch = 2;           // the batch that the trainer holds, and the one being written

int64_t RoundUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

// A record as the loader holds it before it is decoded; nothing if that is not known.
std::optional<int64_t> RecordBytes(const InputSpec& spec, const FilesSeen& files) {
  const auto* const source = std::get_if<FilesSource>(&spec.source);
  if (source == nullptr) return 0;  // a number
  if (source->format == FileFormat::kFixedLength || source->format == FileFormat::kNumPy) return 0;
  if (files.record_bytes) return files.record_bytes;
  int64_t bytes = 0;
  for (const TensorSpec& component : RecordComponents(spec, 0, nullptr)) {
    if (IsVariable(component)) return std::nullopt;
    bytes += NumValues(component.shape) * static_cast<int64_t>(DTypeSize(component.dtype));
  }
  return bytes;
}

// Of all shuffles of records together; nothing if that is not known.
std::optional<int64_t> ShuffleBytes(const InputSpec& spec, const FilesSeen& files) {
  constexpr int64_t kReference = 24;  // to a record
  int64_t buffered = 0;
  bool packed = false;
  for (const Transformation& transformation : spec.pipeline) {
    const auto* const shuffle = std::get_if<Shuffle>(&transformation);
    packed = packed || std::holds_alternative<Pack>(transformation);
    if (shuffle != nullptr && packed) return std::nullopt;  // a row holds as many records as fit
    if (shuffle != nullptr && !shuffle->global) buffered += shuffle->buffer_size;
  }
  if (buffered == 0) return 0;
  const std::optional<int64_t> record = RecordBytes(spec, files);
  if (!record) return std::nullopt;
  const double bytes = static_cast<double>(buffered) * static_cast<double>(*record) * kScattered;
  // Small buffers are not compacted, and hold up to so much.
  const double least = *record == 0 ? 0 : static_cast<double>(kUncompacted);
  return static_cast<int64_t>(std::max(bytes, std::min(least, bytes * 4))) + buffered * kReference;
}

int64_t ReadAheadBytes(const InputSpec& spec, const FilesSeen& files, const Topology& run, int64_t slot) {
  const std::vector<TensorSpec> components = RecordComponents(spec, spec.pipeline.size(), nullptr);
  const bool variable = std::any_of(components.begin(), components.end(), IsVariable);
  int64_t bytes = std::max(variable ? kVariablePieces : kPieces, 2 * run.replicas_per_worker * slot);
  const auto* const source = std::get_if<FilesSource>(&spec.source);
  if (source == nullptr) return bytes;
  int64_t open = 1;
  if (!spec.pipeline.empty()) {
    if (const auto* interleave = std::get_if<Interleave>(&spec.pipeline[0])) open = interleave->cycle_length;
  }
  bytes += open * (source->format == FileFormat::kParquet ? kRowGroup : 2 * kBlock + kDecompressed);
  return files.remote ? bytes + kRemoteAhead : bytes;
}

}  // namespace

int64_t LargestPiece(const Plan& plan, const Topology& run) {
  int64_t largest = 0;
  for (const Transformation& transformation : plan.spec.pipeline) {  // the last one is cut
    const auto* batch = std::get_if<Batch>(&transformation);
    if (batch == nullptr) continue;
    largest = batch->size;
    if (batch->buckets) largest = *std::max_element(batch->buckets->sizes.begin(), batch->buckets->sizes.end());
  }
  const int64_t replicas = SharingTopology(plan, run).replicas_in_sync();
  return (largest + replicas - 1) / replicas;
}

int64_t DefaultPrefetchSteps(int64_t slot_bytes) {
  constexpr int64_t kAhead = int64_t{16} << 20;
  return std::clamp<int64_t>(kAhead / RoundUp(std::max<int64_t>(1, slot_bytes), kRingPageBytes), 4, 16);
}

std::optional<LoaderMemory> EstimateMemory(const Plan& plan, const Topology& run, int64_t rows,
                                           const FilesSeen& files) {
  const InputSpec& spec = plan.spec;
  const ElementShape element = PipelineElement(spec);
  if (element.components.empty() || element.batch_dims > 1 || (element.batch_dims == 1 && rows == 0)) return {};
  const int64_t records = element.batch_dims == 0 ? 1 : rows;
  const auto variable = static_cast<int64_t>(VariableBytes(spec, records));
  int64_t certain = 0;
  for (const TensorSpec& component : RecordComponents(spec, spec.pipeline.size(), nullptr)) {
    if (IsVariable(component)) {  // its row splits, and what aligns its values
      certain += RoundUp((records + 1) * static_cast<int64_t>(sizeof(int64_t)), kRingTensorAlign) + kRingTensorAlign;
    } else {
      certain += RoundUp(records * NumValues(component.shape) * static_cast<int64_t>(DTypeSize(component.dtype)),
                         kRingTensorAlign);
    }
  }
  LoaderMemory memory;
  memory.slot_bytes = RoundUp(std::max<int64_t>(1, certain + variable), kRingPageBytes);
  memory.prefetch_steps = spec.delivery.prefetch_steps.value_or(DefaultPrefetchSteps(memory.slot_bytes));
  const int64_t slots = (memory.prefetch_steps + kSlotsBeyondPrefetch) * run.replicas_per_worker;
  memory.ring_bytes = memory.slot_bytes * slots;
  memory.certain_ring_bytes = RoundUp(std::max<int64_t>(1, certain), kRingPageBytes) * slots;
  memory.shuffle_bytes = ShuffleBytes(spec, files);
  memory.read_ahead_bytes = ReadAheadBytes(spec, files, run, memory.slot_bytes);
  if (const Exchanged exchanged = WhatIsExchanged(plan); exchanged != Exchanged::kNothing && run.num_workers > 1) {
    const int64_t parts = exchanged == Exchanged::kParts ? run.num_workers : 1;
    memory.read_ahead_bytes += kExchangeBuffers * parts * memory.slot_bytes;
  }
  if (memory.shuffle_bytes) memory.loader_bytes = kProgram + memory.read_ahead_bytes + *memory.shuffle_bytes;
  return memory;
}

}  // namespace headrace
