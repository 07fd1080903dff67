#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/explanation.h"

namespace headrace::cli {
namespace {

using nlohmann::json;

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
  if (source["kind"] == "function") {
    std::string command;
    for (const json& word : source["command"]) command += " " + Text(word);
    return "the function of the program" + (command.empty() ? std::string(" in its container") : command);
  }
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
  if (const std::string exchange = Text(explanation["exchange"]); !exchange.empty()) {
    lines.Add("exchange", "over NCCL: " + exchange);
  }
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
  if (memory.is_object()) {
    const auto part = [&](const char* name) { return Bytes(memory[name].get<int64_t>()); };
    lines.Add("", memory["loaderBytes"].is_null()
                      ? "the loader besides: " + part("readAheadBytes") +
                            " read ahead, and the shuffle buffer's records, whose size is not known here"
                      : "the loader besides: about " + part("loaderBytes") + ", of which " + part("shuffleBytes") +
                            " for shuffles and " + part("readAheadBytes") + " read ahead");
  }
  for (const json& warning : explanation["warnings"]) lines.Add("warning", Text(warning));
  return lines.Take();
}

}  // namespace headrace::cli
