#include "cli/memory_estimate.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/ring/layout.h"
#include "common/spec/components.h"
#include "common/spec/remote_path.h"
#include "common/spec/tensor_fields.h"
#include "common/spec/variable.h"

namespace headrace::cli {
namespace {

using nlohmann::json;

// What the loader has, which the tests of tests/bench measure; the rest follows from its constants.
constexpr int64_t kProgram = int64_t{24} << 20;
constexpr int64_t kBlock = 256 << 10;                 // BytesBlockPool
constexpr int64_t kDecompressed = 768 << 10;          // ahead of each compressed file
constexpr int64_t kRemoteAhead = int64_t{128} << 20;  // ReadAhead, all files together
constexpr int64_t kPieces = int64_t{16} << 20;        // LookAhead: as many batches, and at least two
constexpr int64_t kUncompacted = int64_t{64} << 20;   // Compaction: blocks are left alone up to there
constexpr double kScattered = 2.5;                    // ... and take so many times their records beyond

int64_t RoundUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

// The mean size of the first records of a file, where their format says it soon.
std::optional<int64_t> FirstRecordsBytes(const std::string& path, FileFormat format) {
  std::vector<char> bytes(64 << 10);
  std::ifstream file(path, std::ios::binary);
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<size_t>(file.gcount()));
  int64_t records = 0;
  size_t end = 0;
  switch (format) {
    case FileFormat::kText:
    case FileFormat::kCsv:
    case FileFormat::kJsonLines:
      for (size_t i = 0; i < bytes.size(); ++i) {
        if (bytes[i] != '\n') continue;
        ++records;
        end = i + 1;
      }
      break;
    case FileFormat::kTFRecord:
      while (end + sizeof(uint64_t) <= bytes.size()) {
        uint64_t length = 0;
        std::memcpy(&length, &bytes[end], sizeof length);
        if (length > (uint64_t{1} << 30)) return std::nullopt;  // compressed, or no such file
        end += static_cast<size_t>(length) + 16;                // with its frame
        ++records;
      }
      break;
    default: return std::nullopt;
  }
  return records == 0 ? std::nullopt : std::optional(static_cast<int64_t>(end) / records);
}

// A record as the loader holds it before it is decoded; nothing if that is not known.
std::optional<int64_t> RecordBytes(const InputSpec& spec, const std::vector<std::string>& files) {
  const auto* const source = std::get_if<FilesSource>(&spec.source);
  if (source == nullptr) return 0;  // a number
  if (source->format == FileFormat::kFixedLength || source->format == FileFormat::kNumPy) return 0;
  if (!files.empty() && !IsRemotePath(files[0])) {
    if (const auto bytes = FirstRecordsBytes(files[0], source->format)) return bytes;
  }
  int64_t bytes = 0;
  for (const TensorSpec& component : RecordComponents(spec, 0, nullptr)) {
    if (IsVariable(component)) return std::nullopt;
    bytes += NumValues(component.shape) * static_cast<int64_t>(DTypeSize(component.dtype));
  }
  return bytes;
}

// Of all shuffles of records together; nothing if that is not known.
std::optional<int64_t> ShuffleBytes(const InputSpec& spec, const std::vector<std::string>& files) {
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

int64_t ReadAheadBytes(const InputSpec& spec, const std::vector<std::string>& files, int64_t slot) {
  int64_t bytes = std::max(kPieces, 2 * slot);
  const auto* const source = std::get_if<FilesSource>(&spec.source);
  if (source == nullptr) return bytes;
  int64_t open = 1;
  if (!spec.pipeline.empty()) {
    if (const auto* interleave = std::get_if<Interleave>(&spec.pipeline[0])) open = interleave->cycle_length;
  }
  bytes += open * (2 * kBlock + kDecompressed);
  if (!files.empty() && IsRemotePath(files[0])) bytes += kRemoteAhead;
  return bytes;
}

}  // namespace

json MemoryEstimate(const Plan& plan, const std::vector<std::string>& files, int64_t rows, int64_t workers,
                    int64_t replicas_per_worker) {
  const ElementShape element = PipelineElement(plan.spec);
  if (element.components.empty() || element.batch_dims > 1 || (element.batch_dims == 1 && rows == 0)) return json();
  const int64_t records = element.batch_dims == 0 ? 1 : rows;
  auto slot = static_cast<int64_t>(VariableBytes(plan.spec, records));
  for (const TensorSpec& component : RecordComponents(plan.spec, plan.spec.pipeline.size(), nullptr)) {
    if (IsVariable(component)) {  // its row splits, and what aligns its values
      slot += RoundUp((records + 1) * static_cast<int64_t>(sizeof(int64_t)), ring::kTensorAlign) + ring::kTensorAlign;
    } else {
      slot += RoundUp(records * NumValues(component.shape) * static_cast<int64_t>(DTypeSize(component.dtype)),
                      ring::kTensorAlign);
    }
  }
  slot = RoundUp(std::max<int64_t>(1, slot), ring::kPageBytes);
  const int64_t steps =
      plan.spec.delivery.prefetch_steps.value_or(DefaultPrefetchSteps({workers, 0, replicas_per_worker}));
  constexpr int64_t kSlotsBeyondPrefetch = 2;  // the batch that the trainer holds, and the one being written
  json memory = {{"slotBytes", slot},
                 {"prefetchSteps", steps},
                 {"bytesPerWorker", slot * (steps + kSlotsBeyondPrefetch) * replicas_per_worker}};
  const std::optional<int64_t> shuffle = ShuffleBytes(plan.spec, files);
  const int64_t ahead = ReadAheadBytes(plan.spec, files, slot);
  memory["shuffleBytes"] = shuffle ? json(*shuffle) : json();
  memory["readAheadBytes"] = ahead;
  memory["loaderBytes"] = shuffle ? json(kProgram + ahead + *shuffle) : json();
  return memory;
}

}  // namespace headrace::cli
