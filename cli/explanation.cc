#include "cli/explanation.h"

#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/memory_estimate.h"
#include "common/spec/collective.h"
#include "common/spec/components.h"

namespace headrace::cli {
namespace {

using nlohmann::json;

json Known(int64_t value) { return value < 0 ? json() : json(value); }

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The size of the global batch, 0 if there is none.
int64_t GlobalBatchSize(const InputSpec& spec) {
  int64_t size = 0;
  for (const Transformation& transformation : spec.pipeline) {
    if (const auto* batch = std::get_if<Batch>(&transformation)) size = batch->size;
  }
  return size;
}

// How many rows each replica in sync gets of one full batch.
json Pieces(const Plan& plan, int64_t batch, int64_t replicas_in_sync) {
  if (batch == 0) return json();
  json pieces = json::array();
  const bool per_batch = plan.spec.distribution.rebatch == Rebatch::kPerBatch;
  const int64_t size = CeilDiv(batch, replicas_in_sync);
  for (int64_t i = 0; i < replicas_in_sync; ++i) {
    const int64_t even = batch / replicas_in_sync + (i < batch % replicas_in_sync ? 1 : 0);
    pieces.push_back(per_batch ? std::clamp<int64_t>(batch - i * size, 0, size) : even);
  }
  return pieces;
}

std::vector<std::string> Match(const std::string& pattern, const std::string& directory) {
  const std::string full = pattern[0] == '/' ? pattern : directory + "/" + pattern;
  std::vector<std::string> paths;
  glob_t found = {};
  if (glob(full.c_str(), 0, nullptr, &found) == 0) paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  return paths;
}

json SourceJson(const LocalInput& input, std::vector<std::string>* files, json* warnings) {
  const InputSpec& spec = input.plan.spec;
  if (const auto* range = std::get_if<RangeSource>(&spec.source)) {
    return {{"kind", "range"},
            {"start", range->start},
            {"stop", range->stop ? json(*range->stop) : json()},
            {"step", range->step}};
  }
  if (const auto* tensors = std::get_if<TensorsSource>(&spec.source)) {
    return {{"kind", "tensors"}, {"rows", tensors->tensors[0].shape[0]}};
  }
  if (const auto* function = std::get_if<FunctionSource>(&spec.source)) {
    return {{"kind", "function"}, {"command", function->command}};
  }
  const auto& source = std::get<FilesSource>(spec.source);
  int64_t bytes = 0;
  for (size_t i = 0; i < source.paths.size(); ++i) {
    const std::vector<std::string> matches = Match(source.paths[i], input.data_directory);
    if (matches.empty()) {
      warnings->push_back("spec.source.files.paths[" + std::to_string(i) + "]: \"" + source.paths[i] +
                          "\" matches no file here (relative paths start at " + input.data_directory + ")");
    }
    for (const std::string& path : matches) {
      struct stat status = {};
      if (stat(path.c_str(), &status) == 0) bytes += status.st_size;
      files->push_back(path);
    }
  }
  return {{"kind", "files"},
          {"format", FormatName(source.format)},
          {"paths", source.paths},
          {"files", files->size()},
          {"bytes", bytes}};
}

// Names of the files each worker reads; null where that cannot be told before the run.
json Shards(const Plan& plan, const std::vector<std::string>& files, int64_t workers) {
  const auto* source = std::get_if<FilesSource>(&plan.spec.source);
  if (source == nullptr || files.empty() || !source->pipeline.empty()) return json();
  json shards = json::array();
  for (int64_t w = 0; w < workers; ++w) {
    const bool deal = plan.effective_policy == AutoShardPolicy::kFile;
    json names = json::array();
    for (size_t f = deal ? static_cast<size_t>(w) : 0; f < files.size(); f += deal ? static_cast<size_t>(workers) : 1) {
      names.push_back(std::filesystem::path(files[f]).filename().string());
    }
    shards.push_back({{"worker", w}, {"files", names}});
  }
  return shards;
}

// The number of records, by the lengths in their frames; nothing if the file is compressed or broken, or is too large
// to be walked through for an answer at once.
std::optional<int64_t> CountRecords(const std::string& path) {
  constexpr int64_t kLargest = 64 << 20;
  constexpr int64_t kFrame = 16;  // length, its CRC, the data's CRC
  std::error_code error;
  const auto size = static_cast<int64_t>(std::filesystem::file_size(path, error));
  std::ifstream file(path, std::ios::binary);
  if (error || !file || size > kLargest) return std::nullopt;
  int64_t records = 0;
  int64_t offset = 0;
  while (offset < size) {
    uint64_t length = 0;
    file.seekg(offset);
    file.read(reinterpret_cast<char*>(&length), sizeof length);
    if (!file || length > static_cast<uint64_t>(size) || offset + kFrame + static_cast<int64_t>(length) > size) {
      return std::nullopt;
    }
    offset += kFrame + static_cast<int64_t>(length);
    ++records;
  }
  return records;
}

// The batches that the pipeline makes of so many records.
int64_t BatchesOf(InputSpec spec, int64_t records) {
  RangeSource range;
  range.stop = records;
  spec.source = range;
  std::erase_if(spec.pipeline, [](const Transformation& t) { return std::holds_alternative<Interleave>(t); });
  return Cardinality(spec);
}

// The batches that worker `w` makes in an epoch, or a kUnknown/kInfiniteCardinality.
int64_t WorkerBatches(const Plan& plan, const std::vector<std::string>& files, int64_t workers, int64_t w) {
  if (IsEndless(plan.spec)) return kInfiniteCardinality;
  const auto* source = std::get_if<FilesSource>(&plan.spec.source);
  if (source == nullptr) return Cardinality(plan.spec);
  const bool counts = source->format == FileFormat::kTFRecord && source->pipeline.empty();
  if (files.empty() || !counts) return kUnknownCardinality;
  const bool deal = plan.effective_policy == AutoShardPolicy::kFile;
  int64_t records = 0;
  for (size_t f = deal ? static_cast<size_t>(w) : 0; f < files.size(); f += deal ? static_cast<size_t>(workers) : 1) {
    const std::optional<int64_t> count = CountRecords(files[f]);
    if (!count) return kUnknownCardinality;
    records += *count;
  }
  return BatchesOf(plan.spec, records);
}

// Steps in an epoch, until the last worker has ended, where they follow from the spec and the files' lengths.
json StepsPerEpoch(const Plan& plan, const std::vector<std::string>& files, int64_t workers,
                   int64_t replicas_per_worker) {
  const int64_t replicas = workers * replicas_per_worker;
  const bool cut_on_its_own = plan.spec.distribution.rebatch == Rebatch::kPerBatch;
  if (plan.effective_policy == AutoShardPolicy::kHint) return json();
  int64_t most = 0;
  for (int64_t w = 0; w < workers; ++w) {
    const int64_t batches = WorkerBatches(plan, files, workers, w);
    if (batches == kInfiniteCardinality) return "endless";
    if (batches < 0 || (replicas > 1 && !cut_on_its_own)) return json();
    // Under Data a worker keeps R of a batch's N pieces, else all N; it hands out R in a step.
    most = std::max(most, plan.effective_policy == AutoShardPolicy::kData ? batches : batches * workers);
  }
  return most;
}

}  // namespace

Result<json> Explain(const LocalInput& input, int64_t workers, int64_t replicas_per_worker) {
  const Plan& plan = input.plan;
  const Topology run{workers, 0, replicas_per_worker};
  RETURN_IF_ERROR(CheckTopology(plan, run));
  const Topology topology = SharingTopology(plan, run);
  json warnings = plan.warnings;
  for (const std::string& warning : TopologyWarnings(plan, run)) warnings.push_back(warning);
  if (!KnowsComponents(plan.spec)) {
    warnings.push_back(
        "spec.features: without it the element spec is that of the files' columns, known when one is opened, and the "
        "rings' room is that of delivery.maxBatchBytes, else 4096 bytes for each record of a batch");
  }
  std::vector<std::string> files;
  json source = SourceJson(input, &files, &warnings);
  const int64_t batch = GlobalBatchSize(plan.spec);
  const json pieces = Pieces(plan, batch, topology.replicas_in_sync());
  const auto* files_source = std::get_if<FilesSource>(&plan.spec.source);
  if (plan.effective_policy == AutoShardPolicy::kFile && workers > 1 && files_source != nullptr &&
      files_source->pipeline.empty() && !files.empty() && static_cast<int64_t>(files.size()) < workers) {
    return InvalidArgument("spec.distribution.autoShardPolicy: File needs at least as many files as workers, and " +
                           std::to_string(files.size()) + (files.size() == 1 ? " file" : " files") +
                           " cannot be shared out among " + std::to_string(workers) + " workers" +
                           "; use more files, fewer workers, or autoShardPolicy: Data");
  }
  const json spec = ToJson(plan.spec);
  json element_spec = ToJson(ElementSpec(plan, topology));
  for (size_t i = 0; i < element_spec.size(); ++i) {
    element_spec[i]["text"] = ElementSpec(plan, topology)[i].ToString();
  }
  return json{{"input", input.name},
              {"plan", plan.hash},
              {"source", source},
              {"pipeline", spec["pipeline"]},
              {"policy",
               {{"asked", PolicyName(plan.spec.distribution.auto_shard_policy)},
                {"effective", PolicyName(plan.effective_policy)},
                {"why", PolicyReason(plan)}}},
              {"exchange", ExchangeReason(plan)},
              {"rebatch", spec["distribution"]["rebatch"]},
              {"workers", workers},
              {"replicasPerWorker", replicas_per_worker},
              {"globalBatchSize", batch == 0 ? json() : json(batch)},
              {"pieces", pieces},
              {"cardinality", Known(Cardinality(plan.spec))},
              {"shards", Shards(plan, files, workers)},
              {"stepsPerEpoch", StepsPerEpoch(plan, files, workers, replicas_per_worker)},
              {"elementSpec", element_spec},
              {"memory", MemoryEstimate(plan, files, pieces.is_null() ? 0 : pieces[0].get<int64_t>(), workers,
                                        replicas_per_worker)},
              {"warnings", warnings}};
}

}  // namespace headrace::cli
