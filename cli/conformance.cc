#include "cli/conformance.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace headrace::cli {
namespace {

using nlohmann::json;

Status Unsupported(const std::string& what) { return Unavailable("not supported: " + what); }

// "AUTO" -> "Auto".
Result<std::string> PolicyField(const std::string& policy) {
  static const std::pair<const char*, const char*> kNames[] = {
      {"AUTO", "Auto"}, {"FILE", "File"}, {"DATA", "Data"}, {"OFF", "Off"}, {"HINT", "Hint"}};
  for (const auto& [name, field] : kNames) {
    if (policy == name) return std::string(field);
  }
  return Unsupported("policy " + policy);
}

Result<json> Shard(const json& step) {
  if (step.at("num_shards") == "SHARD_HINT") return json{{"shard", {{"by", "Hint"}}}};
  if (step.at("num_shards").is_number()) {
    return json{{"shard", {{"numShards", step.at("num_shards")}, {"index", step.at("index")}}}};
  }
  return Unsupported("shard(" + step.at("num_shards").dump() + ", " + step.at("index").dump() + ")");
}

// One transformation; null where the case's step has no counterpart because another field says it.
Result<json> Transformation(const json& step) {
  const std::string op = step.at("op");
  if (op == "batch") {
    if (!step.at("size").is_number()) return Unsupported("batch size " + step.at("size").dump());
    return json{{"batch", {{"size", step.at("size")}, {"dropRemainder", step.value("drop_remainder", false)}}}};
  }
  if (op == "repeat" || op == "take" || op == "skip") return json{{op, {{"count", step.at("count")}}}};
  if (op == "interleave") {
    return json{{op, {{"cycleLength", step.at("cycle_length")}, {"blockLength", step.at("block_length")}}}};
  }
  if (op == "enumerate") return json{{op, json::object()}};
  if (op == "prefetch") return json{{op, {{"bufferSize", step.at("buffer_size")}}}};
  if (op == "shard") return Shard(step);
  if (op == "map_identity") return json();  // distribution.rebatch says what the map was there for
  return Unsupported("transformation " + op);
}

Result<json> Pipeline(const json& steps) {
  json pipeline = json::array();
  for (const json& step : steps) {
    ASSIGN_OR_RETURN(json transformation, Transformation(step));
    if (!transformation.is_null()) pipeline.push_back(std::move(transformation));
  }
  return pipeline;
}

std::vector<double> Flatten(const json& nested) {
  if (!nested.is_array()) return {nested.get<double>()};
  std::vector<double> values;
  for (const json& item : nested) {
    const std::vector<double> inner = Flatten(item);
    values.insert(values.end(), inner.begin(), inner.end());
  }
  return values;
}

// One element with the given components: one row of each tensor.
json TensorsSource(const json& components) {
  json tensors = json::array();
  for (size_t i = 0; i < components.size(); ++i) {
    json shape = json::array({1});
    for (const json* level = &components[i]; level->is_array(); level = &level->front()) shape.push_back(level->size());
    tensors.push_back({{"name", "c" + std::to_string(i)},
                       {"dtype", "float32"},
                       {"shape", shape},
                       {"values", Flatten(components[i])}});
  }
  return {{"tensors", tensors}};
}

Status FillSource(const json& source, const std::vector<std::string>& paths, const json& file_transforms, json* spec) {
  const std::string kind = source.at("kind");
  if (kind == "range") {
    (*spec)["source"] = {{"range", {{"start", 0}, {"stop", source.at("count")}}}};
    return Status();
  }
  if (kind == "files") {
    json files = {{"format", "TFRecord"}, {"paths", paths}};
    ASSIGN_OR_RETURN(json pipeline, Pipeline(file_transforms));
    if (!pipeline.empty()) files["pipeline"] = pipeline;
    (*spec)["source"] = {{"files", files}};
    (*spec)["features"] = json::array({{{"name", "x"}, {"dtype", "int64"}, {"shape", json::array()}}});
    return Status();
  }
  if (kind == "constant") {
    (*spec)["source"] = TensorsSource(source.at("components"));
    return Status();
  }
  if (kind == "generator") {  // endless vectors [ik .. ik+k-1]: an endless counter cut into fixed batches of k
    (*spec)["source"] = {{"range", {{"start", 0}, {"dtype", "float32"}}}};
    const json batch = {{"batch", {{"size", source.at("width")}, {"dropRemainder", true}}}};
    (*spec)["pipeline"].insert((*spec)["pipeline"].begin(), batch);
    return Status();
  }
  return Unsupported("source " + kind);
}

std::string Shown(const json& value) {
  constexpr size_t kLongest = 400;
  std::string text = value.dump();
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "... (" + std::to_string(text.size()) + " characters)";
  return text;
}

class Comparison {
 public:
  Comparison(const ConformanceCase& conformance_case, const std::vector<WorkerObservation>& workers)
      : case_(conformance_case), json_(*conformance_case.json), expect_(json_.at("expect")), workers_(workers) {}

  std::vector<std::string> Run() {
    if (static_cast<int64_t>(workers_.size()) != case_.workers) {
      Differ("number of workers", case_.workers, workers_.size());
    } else if (expect_.contains("error")) {
      ExpectErrors();
    } else if (expect_.contains("values")) {
      ExpectValues();
    } else {
      ExpectSteps();
    }
    return std::move(differences_);
  }

 private:
  void Differ(const std::string& what, const json& expected, const json& got) {
    differences_.push_back(what + ": expected " + Shown(expected) + ", got " + Shown(got));
  }

  // Every worker must fail before its first batch, with a message that names the field and the numbers.
  void ExpectErrors() {
    for (size_t w = 0; w < workers_.size(); ++w) {
      const std::string who = "worker " + std::to_string(w);
      const WorkerObservation& worker = workers_[w];
      if (worker.error.empty()) {
        Differ(who, "an error (" + expect_.at("error").get<std::string>() + ")", *worker.steps);
        continue;
      }
      if (worker.steps != nullptr && !worker.steps->empty()) {
        Differ(who + ": batches before the error", json::array(), *worker.steps);
      }
      for (const std::string& part : NeededInMessage()) {
        if (worker.error.find(part) == std::string::npos) {
          Differ(who + ": error message", "one that names " + part, worker.error);
        }
      }
    }
  }

  std::vector<std::string> NeededInMessage() const {
    std::vector<std::string> parts = {"spec."};
    const std::string text = expect_.value("message_contains", "");
    if (text.find("not enough for the required") != std::string::npos) {
      parts.push_back(std::to_string(json_.at("source").at("files").size()));
      parts.push_back(std::to_string(case_.workers));
    }
    return parts;
  }

  void ExpectValues() {
    json values = json::array();
    for (const WorkerObservation& worker : workers_) {
      if (!worker.error.empty()) return Differ("values", expect_["values"], worker.error);
      values.insert(values.end(), worker.values->begin(), worker.values->end());
    }
    if (values != expect_["values"]) Differ("values", expect_["values"], values);
  }

  void ExpectSteps() {
    size_t longest = 0;
    for (size_t w = 0; w < workers_.size(); ++w) {
      const std::string who = "worker " + std::to_string(w);
      const WorkerObservation& worker = workers_[w];
      if (!worker.error.empty()) {
        Differ(who, "no error", worker.error);
        continue;
      }
      longest = std::max(longest, worker.steps->size());
      ExpectSameSteps(who, UntilAllEnd(expect_.at("steps").at(w)), *worker.steps);
      if (worker.optional_steps != nullptr) {
        const json& optional = expect_.contains("optional_steps") ? expect_["optional_steps"] : expect_["steps"];
        ExpectSameSteps(who + " by get_next_as_optional", UntilAllEnd(optional.at(w)), *worker.optional_steps);
      }
      ExpectDescription(who, worker);
    }
    const json& global = expect_.value("global_steps", json());
    if (!global.is_null() && differences_.empty() && global != longest) Differ("global_steps", global, longest);
  }

  // A worker's own steps, and those without data until the last worker ends, or max_steps cuts all of them off.
  json UntilAllEnd(json steps) const {
    size_t longest = 0;
    for (const json& worker : expect_.at("steps")) longest = std::max(longest, worker.size());
    json none = json::array();
    for (int64_t r = 0; r < case_.replicas_per_worker; ++r) none.push_back(json::array());
    while (case_.workers > 1 && steps.size() < longest) steps.push_back(none);
    return steps;
  }

  void ExpectSameSteps(const std::string& who, const json& expected, const json& got) {
    if (expected == got) return;
    for (size_t s = 0; s < std::min(expected.size(), got.size()); ++s) {
      if (expected[s] != got[s]) return Differ(who + ", step " + std::to_string(s), expected[s], got[s]);
    }
    const size_t s = std::min(expected.size(), got.size());
    Differ(who + ", step " + std::to_string(s), s < expected.size() ? expected[s] : json("the end"),
           s < got.size() ? got[s] : json("the end"));
  }

  void ExpectDescription(const std::string& who, const WorkerObservation& worker) {
    const std::string element_spec = json_.value("element_spec", "");
    if (!element_spec.empty() && element_spec != worker.element_spec) {
      Differ(who + ": element_spec", element_spec, worker.element_spec);
    }
    if (expect_.contains("contexts")) {
      const json& context = expect_["contexts"].at(static_cast<size_t>(&worker - workers_.data()));
      if (context != *worker.context) Differ(who + ": context", context, *worker.context);
    }
    const std::string applied = expect_.value("policy_applied", "");
    std::string policy = worker.policy;
    std::transform(policy.begin(), policy.end(), policy.begin(), [](unsigned char c) { return std::toupper(c); });
    if (!applied.empty() && applied != policy) Differ(who + ": policy_applied", applied, policy);
    const bool warned = std::any_of(worker.warnings.begin(), worker.warnings.end(), [](const std::string& warning) {
      return warning.find("Auto") != std::string::npos && warning.find("Data") != std::string::npos;
    });
    if (json_.contains("warning_contains") && !warned) {
      Differ(who + ": warnings", "one that Auto became Data", worker.warnings);
    }
    if (!applied.empty() && applied != "DATA" && warned) {
      Differ(who + ": warnings", "none that Auto became Data", worker.warnings);
    }
  }

  const ConformanceCase& case_;
  const json& json_;
  const json& expect_;
  const std::vector<WorkerObservation>& workers_;
  std::vector<std::string> differences_;
};

}  // namespace

Result<ConformanceCase> ParseCase(const std::string& line) {
  try {
    const json value = json::parse(line);
    ConformanceCase parsed;
    parsed.name = value.at("name");
    parsed.api = value.at("api");
    parsed.workers = value.at("workers");
    parsed.replicas_per_worker = value.at("replicas_per_worker");
    if (parsed.workers < 1 || parsed.replicas_per_worker < 1) {
      return InvalidArgument(parsed.name + ": workers and replicas_per_worker must be at least 1");
    }
    if (value.contains("max_steps")) parsed.max_steps = value["max_steps"].get<int64_t>();
    const json& expect = value.at("expect");
    parsed.also_as_optional = value.contains("iterate") || expect.contains("optional_steps");
    if (!expect.contains("error") && !expect.contains("values") &&
        expect.at("steps").size() != static_cast<size_t>(parsed.workers)) {
      return InvalidArgument(parsed.name + ": expect.steps has " + std::to_string(expect["steps"].size()) +
                             " workers, workers is " + std::to_string(parsed.workers));
    }
    parsed.json = std::make_shared<const json>(value);
    return parsed;
  } catch (const json::exception& e) {
    return InvalidArgument(std::string("not a conformance case: ") + e.what());
  }
}

std::vector<std::vector<int64_t>> CaseFiles(const ConformanceCase& conformance_case) {
  const json source = conformance_case.json->value("source", json::object());
  if (source.value("kind", "") != "files") return {};
  return source.at("files").get<std::vector<std::vector<int64_t>>>();
}

Result<json> CaseSpec(const ConformanceCase& conformance_case, const CasePaths& paths, const std::string& program) {
  const json& value = *conformance_case.json;
  try {
    json spec;
    if (conformance_case.api == "from_function") {
      spec["source"]["function"]["command"] = {program, "verify", "--serve", paths.conformance_case};
      return spec;
    }
    if (conformance_case.api == "values_from_function") {  // whatever the data set holds
      spec["source"]["range"] = json::object();
      spec["pipeline"] = json::array({{{"batch", {{"size", 1}}}}});
      return spec;
    }
    if (conformance_case.api != "distribute_dataset") return Unsupported("api " + conformance_case.api);
    ASSIGN_OR_RETURN(spec["pipeline"], Pipeline(value.at("transforms")));
    RETURN_IF_ERROR(FillSource(value.at("source"), paths.files, value.value("file_transforms", json::array()), &spec));
    ASSIGN_OR_RETURN(const std::string policy, PolicyField(value.at("policy")));
    spec["distribution"] = {{"autoShardPolicy", policy}, {"replicasPerWorker", conformance_case.replicas_per_worker}};
    if (!value.at("rebatch").is_null()) spec["distribution"]["rebatch"] = value["rebatch"];
    return spec;
  } catch (const json::exception& e) {
    return InvalidArgument(conformance_case.name + ": " + e.what());
  }
}

std::vector<std::string> CompareCase(const ConformanceCase& conformance_case,
                                     const std::vector<WorkerObservation>& workers) {
  try {
    return Comparison(conformance_case, workers).Run();
  } catch (const json::exception& e) {
    return {std::string("the case itself: ") + e.what()};
  }
}

}  // namespace headrace::cli
