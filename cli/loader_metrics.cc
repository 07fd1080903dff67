#include "cli/loader_metrics.h"

#include <cstdlib>
#include <map>
#include <sstream>
#include <string_view>

namespace headrace::cli {
namespace {

constexpr size_t kMostReplicas = 1024;  // as HEADRACE_REPLICAS_PER_WORKER

struct Series {
  std::string name;
  std::map<std::string, std::string> labels;
  double value = 0;
};

// name="value", ... up to the closing brace, which `at` is then after. false: it is no such list.
bool ReadLabels(std::string_view line, size_t* at, std::map<std::string, std::string>* labels) {
  while (*at < line.size() && line[*at] != '}') {
    const size_t equals = line.find("=\"", *at);
    if (equals == std::string_view::npos) return false;
    std::string& value = (*labels)[std::string(line.substr(*at, equals - *at))];
    size_t i = equals + 2;
    for (; i < line.size() && line[i] != '"'; ++i) {
      if (line[i] == '\\' && i + 1 < line.size()) ++i;
      value += line[i];
    }
    *at = i + 1;
    if (*at < line.size() && line[*at] == ',') ++*at;
  }
  ++*at;
  return *at <= line.size();
}

bool ReadSeries(std::string_view line, Series* series) {
  if (line.empty() || line[0] == '#') return false;
  size_t at = line.find_first_of("{ ");
  if (at == std::string_view::npos) return false;
  series->name = line.substr(0, at);
  if (line[at] == '{' && !ReadLabels(line, &++at, &series->labels)) return false;
  if (at >= line.size()) return false;
  series->value = std::strtod(std::string(line.substr(at)).c_str(), nullptr);
  return true;
}

double* StageField(LoaderSample::Stage* stage, const std::string& state) {
  if (state == "busy") return &stage->busy;
  if (state == "blocked_on_input") return &stage->blocked_on_input;
  return state == "blocked_on_output" ? &stage->blocked_on_output : nullptr;
}

constexpr struct {
  const char* name;
  double LoaderSample::Replica::*field;
} kReplicaFields[] = {
    {"headrace_loader_batches_total", &LoaderSample::Replica::batches},
    {"headrace_loader_records_total", &LoaderSample::Replica::records},
    {"headrace_loader_bytes_total", &LoaderSample::Replica::bytes},
    {"headrace_loader_trainer_wait_seconds_total", &LoaderSample::Replica::trainer_wait},
    {"headrace_loader_ring_full_seconds_total", &LoaderSample::Replica::ring_full},
    {"headrace_loader_ring_batches", &LoaderSample::Replica::ring_batches},
    {"headrace_loader_ring_slots", &LoaderSample::Replica::ring_slots},
};

// Where the sample keeps the series; nullptr: nowhere.
double* FieldOf(Series& series, LoaderSample* sample) {
  if (series.name == "headrace_loader_epoch") return &sample->epoch;
  if (series.name == "headrace_loader_bytes_read_total") return &sample->bytes_read;
  if (series.name == "headrace_loader_decode_threads") return &sample->decode_threads;
  if (series.name == "headrace_loader_stage_seconds_total") {
    const std::string& stage = series.labels["stage"];
    if (stage == "read") return StageField(&sample->read, series.labels["state"]);
    return stage == "decode" ? StageField(&sample->decode, series.labels["state"]) : nullptr;
  }
  for (const auto& [name, field] : kReplicaFields) {
    if (series.name != name) continue;
    const size_t replica = std::strtoul(series.labels["replica"].c_str(), nullptr, 10);
    if (replica >= kMostReplicas) return nullptr;
    if (sample->replicas.size() <= replica) sample->replicas.resize(replica + 1);
    return &(sample->replicas[replica].*field);
  }
  return nullptr;
}

LoaderSample::Stage StageRate(const LoaderSample::Stage& before, const LoaderSample::Stage& after, double seconds) {
  const auto rate = [&](double from, double to) { return (to >= from ? to - from : to) / seconds; };
  return {rate(before.busy, after.busy), rate(before.blocked_on_input, after.blocked_on_input),
          rate(before.blocked_on_output, after.blocked_on_output)};
}

}  // namespace

Result<LoaderSample> ParseLoaderMetrics(const std::string& text) {
  LoaderSample sample;
  bool is_loader = false;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    Series series;
    if (!ReadSeries(line, &series)) continue;
    if (series.name == "headrace_loader_info") {
      is_loader = true;
      sample.input = series.labels["input"];
    } else if (double* const field = FieldOf(series, &sample)) {
      *field = series.value;
    }
  }
  if (is_loader) return sample;
  return InvalidArgument(
      "these are not a loader's metrics: there is no headrace_loader_info; loaders serve theirs on "
      "port 9464 of their pods, at /metrics");
}

LoaderRates RatesBetween(const LoaderSample& before, const LoaderSample& after, double seconds) {
  const auto rate = [&](double from, double to) { return (to >= from ? to - from : to) / seconds; };
  LoaderRates result{seconds, after};
  LoaderSample& rates = result.rates;
  rates.bytes_read = rate(before.bytes_read, after.bytes_read);
  rates.read = StageRate(before.read, after.read, seconds);
  rates.decode = StageRate(before.decode, after.decode, seconds);
  for (size_t r = 0; r < rates.replicas.size(); ++r) {
    const LoaderSample::Replica from = r < before.replicas.size() ? before.replicas[r] : LoaderSample::Replica();
    LoaderSample::Replica& replica = rates.replicas[r];
    for (double LoaderSample::Replica::*const field :
         {&LoaderSample::Replica::batches, &LoaderSample::Replica::records, &LoaderSample::Replica::bytes,
          &LoaderSample::Replica::trainer_wait, &LoaderSample::Replica::ring_full}) {
      replica.*field = rate(from.*field, replica.*field);
    }
  }
  return result;
}

}  // namespace headrace::cli
