#include "cli/explanation.h"

#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "common/ring/layout.h"

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

std::string PolicyReason(const Plan& plan) {
  const bool files = std::holds_alternative<FilesSource>(plan.spec.source);
  std::string why;
  if (plan.spec.distribution.auto_shard_policy == AutoShardPolicy::kAuto) {
    why = files ? "Auto, and the source reads files: " : "Auto, and the source has no files to share out: ";
  }
  switch (plan.effective_policy) {
    case AutoShardPolicy::kFile: return why + "worker w of W reads the files w, w+W, w+2W, ... and no other";
    case AutoShardPolicy::kData: return why + "all workers read the same and keep every W-th piece of the batches";
    case AutoShardPolicy::kOff: return why + "nothing is sharded: every worker delivers all the data";
    case AutoShardPolicy::kHint: return why + "each shard: {by: Hint} in a pipeline becomes shard(workers, worker)";
    case AutoShardPolicy::kAuto: break;
  }
  return why;
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
  return {
      {"kind", "files"}, {"format", "TFRecord"}, {"paths", source.paths}, {"files", files->size()}, {"bytes", bytes}};
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

// Steps an epoch of one worker, where they follow from the spec alone.
json StepsPerEpoch(const Plan& plan, int64_t workers, int64_t replicas_per_worker) {
  const int64_t batches = Cardinality(plan.spec);
  const int64_t replicas = workers * replicas_per_worker;
  if (batches == kInfiniteCardinality) return "endless";
  if (batches < 0 || plan.effective_policy == AutoShardPolicy::kHint) return json();
  if (replicas == 1 || plan.effective_policy == AutoShardPolicy::kData) return batches;
  // Each worker keeps all N pieces of each batch and hands out R a step.
  if (plan.spec.distribution.rebatch == Rebatch::kPerBatch) return batches * workers;
  return json();
}

// Memory of the rings of one worker; null if the size of a batch is not known.
json Memory(const Plan& plan, int64_t rows, int64_t workers, int64_t replicas_per_worker) {
  const ElementShape element = PipelineElement(plan.spec);
  if (element.batch_dims > 1 || (element.batch_dims == 1 && rows == 0)) return json();
  const auto round_up = [](int64_t value, int64_t unit) { return CeilDiv(value, unit) * unit; };
  int64_t slot = 0;
  for (const TensorSpec& component : element.components) {
    int64_t values = element.batch_dims == 0 ? 1 : rows;
    for (size_t d = static_cast<size_t>(element.batch_dims); d < component.shape.size(); ++d)
      values *= component.shape[d];
    slot += round_up(values * static_cast<int64_t>(DTypeSize(component.dtype)), ring::kTensorAlign);
  }
  slot = round_up(std::max<int64_t>(1, slot), ring::kPageBytes);
  const int64_t steps = plan.spec.delivery.prefetch_steps.value_or(workers * replicas_per_worker);
  constexpr int64_t kSlotsBeyondPrefetch = 2;  // the batch that the trainer holds, and the one being written
  return {{"slotBytes", slot},
          {"prefetchSteps", steps},
          {"bytesPerWorker", slot * (steps + kSlotsBeyondPrefetch) * replicas_per_worker}};
}

std::string Bytes(int64_t bytes) {
  char text[64];
  if (bytes < 1024) {
    std::snprintf(text, sizeof text, "%" PRId64 " bytes", bytes);
  } else if (bytes < (1 << 20)) {
    std::snprintf(text, sizeof text, "%.1f KiB", static_cast<double>(bytes) / 1024);
  } else if (bytes < (1 << 30)) {
    std::snprintf(text, sizeof text, "%.1f MiB", static_cast<double>(bytes) / (1 << 20));
  } else {
    std::snprintf(text, sizeof text, "%.1f GiB", static_cast<double>(bytes) / (1 << 30));
  }
  return text;
}

std::string Text(const json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

std::string Plural(const json& count, const std::string& noun) {
  return count.dump() + " " + noun + (count == 1 ? "" : "s");
}

// "batch(size 64, dropRemainder false)"
std::string PipelineText(const json& pipeline) {
  std::string text;
  for (const json& step : pipeline) {
    for (const auto& [name, options] : step.items()) {
      text += (text.empty() ? "" : " -> ") + name + "(";
      std::string separator;
      for (const auto& [option, value] : options.items()) {
        text += separator + option + " " + Text(value);
        separator = ", ";
      }
      text += ")";
    }
  }
  return text.empty() ? "nothing: elements as they are read" : text;
}

std::string SourceText(const json& source) {
  if (source["kind"] == "range") {
    return "range from " + source["start"].dump() +
           (source["stop"].is_null() ? ", endless" : " to before " + source["stop"].dump()) +
           (source["step"] == 1 ? "" : ", by " + source["step"].dump());
  }
  if (source["kind"] == "tensors") return Plural(source["rows"], "inline row");
  std::string patterns;
  for (const json& path : source["paths"]) patterns += (patterns.empty() ? "" : ", ") + Text(path);
  return Plural(source["files"], "TFRecord file") + ", " + Bytes(source["bytes"].get<int64_t>()) + ": " + patterns;
}

std::string RebatchText(const json& explanation) {
  if (explanation["pieces"].is_null()) return "no batch to cut";
  if (explanation["pieces"].size() == 1) return "nothing is cut: there is one replica";
  std::string rows;
  for (const json& piece : explanation["pieces"]) rows += (rows.empty() ? "" : " + ") + piece.dump();
  const std::string pieces =
      explanation["pieces"].size() > 16 ? Plural(explanation["pieces"].size(), "piece") : rows + " rows";
  return Text(explanation["rebatch"]) +
         (explanation["rebatch"] == "PerBatch" ? ": each batch is cut on its own; a full one of "
                                               : ": the joined stream of batches is cut; of each ") +
         explanation["globalBatchSize"].dump() + " gives " + pieces;
}

// A label of fixed width before the first of some lines.
class Lines {
 public:
  void Add(const std::string& label, const std::string& text) {
    text_ += label + std::string(kWidth - std::min(kWidth, label.size()), ' ') + text + "\n";
  }
  std::string Take() { return std::move(text_); }

 private:
  static constexpr size_t kWidth = 10;
  std::string text_;
};

void AddShards(const json& explanation, Lines* lines) {
  constexpr size_t kMostNames = 6;
  if (explanation["shards"].is_null()) return;
  std::string label = "shards";
  for (const json& shard : explanation["shards"]) {
    const json& files = shard["files"];
    std::string names;
    for (size_t i = 0; i < files.size() && i < kMostNames; ++i) names += (i > 0 ? ", " : "") + Text(files[i]);
    if (files.size() > kMostNames) names += ", ...";
    lines->Add(label, "worker " + shard["worker"].dump() + ": " + Plural(files.size(), "file") +
                          (names.empty() ? "" : ": ") + names);
    label.clear();
  }
}

}  // namespace

Result<json> Explain(const LocalInput& input, int64_t workers, int64_t replicas_per_worker) {
  const Plan& plan = input.plan;
  const Topology topology{workers, 0, replicas_per_worker};
  RETURN_IF_ERROR(CheckTopology(plan, topology));
  json warnings = plan.warnings;
  std::vector<std::string> files;
  json source = SourceJson(input, &files, &warnings);
  const int64_t batch = GlobalBatchSize(plan.spec);
  const json pieces = Pieces(plan, batch, topology.replicas_in_sync());
  const auto* files_source = std::get_if<FilesSource>(&plan.spec.source);
  if (plan.effective_policy == AutoShardPolicy::kFile && workers > 1 && files_source != nullptr &&
      files_source->pipeline.empty() && !files.empty() && static_cast<int64_t>(files.size()) < workers) {
    return InvalidArgument("spec.distribution.autoShardPolicy: File needs at least as many files as workers, and " +
                           Plural(files.size(), "file") + " cannot be shared out among " + Plural(workers, "worker") +
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
              {"rebatch", spec["distribution"]["rebatch"]},
              {"workers", workers},
              {"replicasPerWorker", replicas_per_worker},
              {"globalBatchSize", batch == 0 ? json() : json(batch)},
              {"pieces", pieces},
              {"cardinality", Known(Cardinality(plan.spec))},
              {"shards", Shards(plan, files, workers)},
              {"stepsPerEpoch", StepsPerEpoch(plan, workers, replicas_per_worker)},
              {"elementSpec", element_spec},
              {"memory", Memory(plan, pieces.is_null() ? 0 : pieces[0].get<int64_t>(), workers, replicas_per_worker)},
              {"warnings", warnings}};
}

std::string PrintExplanation(const json& explanation) {
  Lines lines;
  lines.Add("input", Text(explanation["input"]) + ", plan " + Text(explanation["plan"]));
  lines.Add("source", SourceText(explanation["source"]));
  lines.Add("pipeline", PipelineText(explanation["pipeline"]));
  lines.Add("run", Plural(explanation["workers"], "worker") + " with " +
                       Plural(explanation["replicasPerWorker"], "replica") + " each");
  const json& policy = explanation["policy"];
  lines.Add("policy", Text(policy["effective"]) + " (" + Text(policy["why"]) + ")");
  AddShards(explanation, &lines);
  lines.Add("rebatch", RebatchText(explanation));
  const json& steps = explanation["stepsPerEpoch"];
  lines.Add("steps", steps.is_null()     ? "known once the data is read"
                     : steps.is_string() ? Text(steps)
                                         : Plural(steps, "step") + " in an epoch");
  std::string label = "replica";
  for (const json& component : explanation["elementSpec"]) {
    lines.Add(label, Text(component["name"]) + ": " + Text(component["text"]));
    label.clear();
  }
  const json& memory = explanation["memory"];
  lines.Add("memory", memory.is_null() ? "known once the first batch is made"
                                       : "about " + Bytes(memory["bytesPerWorker"].get<int64_t>()) +
                                             " a worker: " + Plural(memory["prefetchSteps"], "step") + " ahead, " +
                                             Bytes(memory["slotBytes"].get<int64_t>()) + " for each replica's batch");
  for (const json& warning : explanation["warnings"]) lines.Add("warning", Text(warning));
  return lines.Take();
}

}  // namespace headrace::cli
