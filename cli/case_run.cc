#include "cli/case_run.h"

#include <fstream>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/case_reader.h"
#include "cli/interrupt.h"
#include "cli/loaders.h"
#include "cli/tfrecord_writer.h"
#include "cli/worker_stream.h"
#include "common/spec/input_spec.h"
#include "common/spec/plan.h"

namespace headrace::cli {
namespace {

using nlohmann::json;

constexpr int kConnectTimeoutMs = 10000;
// No case is longer; a loader that never ends must not fill the memory.
constexpr size_t kMostSteps = 10000;

Result<std::vector<std::string>> WriteFiles(const ConformanceCase& conformance_case, const std::string& directory) {
  std::vector<std::string> paths;
  for (const std::vector<int64_t>& records : CaseFiles(conformance_case)) {
    std::string number = std::to_string(paths.size());
    number.insert(0, 4 - std::min<size_t>(4, number.size()), '0');
    paths.push_back(directory + "/file-" + number + ".tfrecord");
    RETURN_IF_ERROR(WriteExamples(paths.back(), records));
  }
  return paths;
}

// Reads all workers until their epochs end.
class Reading {
 public:
  Reading(const ConformanceCase& conformance_case, Readers readers, LoaderGroup* loaders)
      : case_(conformance_case),
        readers_(readers),
        loaders_(loaders),
        streams_(static_cast<size_t>(loaders->workers())) {
    for (size_t w = 0; w < streams_.size(); ++w) observations_.push_back(Connect(w));
  }

  std::vector<WorkerObservation> Run() {
    Read(WorkerStream::Iteration::kNext, &WorkerObservation::steps);
    if (case_.also_as_optional) Read(WorkerStream::Iteration::kNextAsOptional, &WorkerObservation::optional_steps);
    return std::move(observations_);
  }

 private:
  WorkerObservation Connect(size_t w) {
    WorkerObservation observation;
    observation.steps = std::make_shared<json>(json::array());
    const std::string directory = loaders_->RunDirectory(static_cast<int64_t>(w));
    const auto gone = [this, w] { return Interrupted() != 0 || !loaders_->Death(static_cast<int64_t>(w)).empty(); };
    auto stream = WorkerStream::Connect(directory, kConnectTimeoutMs, gone);
    if (!stream.ok()) {
      observation.error = Explain(w, stream.status());
      return observation;
    }
    observation.element_spec = (*stream)->element_spec();
    observation.policy = (*stream)->effective_policy();
    observation.warnings = (*stream)->warnings();
    observation.context =
        std::make_shared<json>((*stream)->InputContext(case_.json->value("global_batch", int64_t{0})));
    if (case_.api == "values_from_function") {
      observation.values = std::make_shared<json>((*stream)->Values(case_.json->at("value") == "replica_id"));
      return observation;
    }
    streams_[w] = std::move(stream).value();
    return observation;
  }

  void Read(WorkerStream::Iteration iteration, std::shared_ptr<json> WorkerObservation::*steps) {
    // Each worker by itself, as trainers are: one may wait for what another's trainer makes its loader do.
    std::vector<std::future<Status>> readers;
    for (size_t w = 0; w < streams_.size(); ++w) {
      readers.push_back(std::async(std::launch::async, [this, w, iteration, steps] {
        if (streams_[w] == nullptr || !observations_[w].error.empty()) return Status();
        observations_[w].*steps = std::make_shared<json>(json::array());
        json* const to = (observations_[w].*steps).get();
        const EpochRequest request{iteration, case_.max_steps ? static_cast<size_t>(*case_.max_steps) : kMostSteps};
        if (readers_ == Readers::kOneAWorker) return ReadEpoch(*streams_[w], request, to);
        return ReadEpochByProcesses(loaders_->RunDirectory(static_cast<int64_t>(w)), case_.replicas_per_worker, request,
                                    to);
      }));
    }
    for (size_t w = 0; w < streams_.size(); ++w) {
      const Status status = readers[w].get();
      if (!status.ok()) observations_[w].error = Explain(w, status);
    }
  }

  std::string Explain(size_t w, const Status& status) {
    const std::string death = loaders_->Death(static_cast<int64_t>(w));
    return status.ToString() + (death.empty() ? "" : " (" + death + ")");
  }

  const ConformanceCase& case_;
  const Readers readers_;
  LoaderGroup* loaders_;
  std::vector<std::unique_ptr<WorkerStream>> streams_;
  std::vector<WorkerObservation> observations_;
};

// A spec that is refused is refused for every worker, before any starts.
std::vector<WorkerObservation> Refused(const ConformanceCase& conformance_case, const Status& status) {
  WorkerObservation observation;
  observation.error = status.ToString();
  observation.steps = std::make_shared<json>(json::array());
  return std::vector<WorkerObservation>(static_cast<size_t>(conformance_case.workers), observation);
}

Result<std::vector<WorkerObservation>> Observe(const ConformanceCase& conformance_case, Readers readers) {
  ASSIGN_OR_RETURN(const ScratchDirectory directory, ScratchDirectory::Make("headrace-verify-"));
  CasePaths paths;
  paths.conformance_case = directory.path() + "/case.jsonl";
  std::ofstream(paths.conformance_case) << conformance_case.json->dump() << "\n";
  ASSIGN_OR_RETURN(paths.files, WriteFiles(conformance_case, directory.path()));
  ASSIGN_OR_RETURN(const json spec_json, CaseSpec(conformance_case, paths, SiblingBinary("headrace")));
  Result<InputSpec> spec = ParseInputSpec(spec_json);
  if (!spec.ok()) return Refused(conformance_case, spec.status());
  const Plan plan = CompilePlan(std::move(spec).value(), conformance_case.name);
  LoaderOptions options;
  options.workers = conformance_case.workers;
  options.replicas_per_worker = conformance_case.replicas_per_worker;
  options.data_directory = directory.path();
  options.run_id = "verify";
  ASSIGN_OR_RETURN(const std::unique_ptr<LoaderGroup> loaders, LoaderGroup::Start(plan, options, directory.path()));
  return Reading(conformance_case, readers, loaders.get()).Run();
}

}  // namespace

std::vector<std::string> RunCase(const ConformanceCase& conformance_case, Readers readers) {
  const Result<std::vector<WorkerObservation>> workers = Observe(conformance_case, readers);
  if (!workers.ok()) return {workers.status().message()};
  return CompareCase(conformance_case, *workers);
}

}  // namespace headrace::cli
