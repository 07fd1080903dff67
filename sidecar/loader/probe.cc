#include "sidecar/loader/probe.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <sstream>

namespace headrace::side {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

ClientMetric Sample(MetricType type, double value, std::vector<ClientMetric::Label> labels) {
  ClientMetric sample;
  sample.label = std::move(labels);
  if (type == MetricType::Counter) {
    sample.counter.value = value;
  } else {
    sample.gauge.value = value;
  }
  return sample;
}

MetricFamily Family(const char* name, const char* help, MetricType type) {
  MetricFamily family;
  family.name = name;
  family.help = help;
  family.type = type;
  return family;
}

double Seconds(uint64_t ns) { return static_cast<double>(ns) * 1e-9; }

struct Source {
  const ReplicaCounters& counters;
  const ring::RingWriter& ring;
};

// One series for each replica.
struct ReplicaMetric {
  const char* name;
  const char* help;
  MetricType type;
  double (*value)(const Source&);
};

constexpr ReplicaMetric kReplicaMetrics[] = {
    {"headrace_loader_batches_total", "Batches handed to the replica, those without records among them.",
     MetricType::Counter, [](const Source& s) { return static_cast<double>(s.counters.batches.load()); }},
    {"headrace_loader_records_total", "Records handed to the replica.", MetricType::Counter,
     [](const Source& s) { return static_cast<double>(s.counters.records.load()); }},
    {"headrace_loader_bytes_total", "Bytes of tensors handed to the replica.", MetricType::Counter,
     [](const Source& s) { return static_cast<double>(s.counters.bytes.load()); }},
    {"headrace_loader_trainer_wait_seconds_total", "Time that the replica's next() was blocked by an empty ring.",
     MetricType::Counter, [](const Source& s) { return Seconds(s.ring.header().trainer_wait_ns.load()); }},
    {"headrace_loader_ring_full_seconds_total", "Time that the loader was blocked by the replica's full ring.",
     MetricType::Counter, [](const Source& s) { return Seconds(s.ring.header().loader_wait_ns.load()); }},
    {"headrace_loader_ring_batches", "Batches in the ring: published and not yet released.", MetricType::Gauge,
     [](const Source& s) { return static_cast<double>(s.ring.occupancy()); }},
    {"headrace_loader_ring_slots", "Batches that the ring can hold.", MetricType::Gauge,
     [](const Source& s) { return static_cast<double>(s.ring.header().slot_count); }},
};

// Seconds of a stage, one series for each state.
void AddStage(const char* stage, const StageTimes& times, MetricFamily* family) {
  const auto add = [&](const char* state, uint64_t ns) {
    family->metric.push_back(Sample(MetricType::Counter, Seconds(ns), {{"stage", stage}, {"state", state}}));
  };
  add("busy", times.busy_ns);
  add("blocked_on_input", times.blocked_on_input_ns);
  add("blocked_on_output", times.blocked_on_output_ns);
}

}  // namespace

std::string Probe::Render() const {
  std::vector<MetricFamily> families;
  for (const ReplicaMetric& metric : kReplicaMetrics) {
    MetricFamily& family = families.emplace_back(Family(metric.name, metric.help, metric.type));
    for (size_t replica = 0; replica < rings_.size(); ++replica) {
      const Source source{engine_.counters(replica), *rings_[replica]};
      family.metric.push_back(Sample(metric.type, metric.value(source), {{"replica", std::to_string(replica)}}));
    }
  }
  MetricFamily& read = families.emplace_back(Family("headrace_loader_bytes_read_total",
                                                    "Bytes read from the data set's files, compressed as they lie.",
                                                    MetricType::Counter));
  read.metric.push_back(Sample(MetricType::Counter, static_cast<double>(feed_.bytes_read()), {}));
  MetricFamily& skipped = families.emplace_back(
      Family("headrace_loader_skipped_records_total",
             "Bad records that spec.onError left out, each as often as it was.", MetricType::Counter));
  skipped.metric.push_back(Sample(MetricType::Counter, static_cast<double>(feed_.skipped_records()), {}));
  MetricFamily& stages = families.emplace_back(
      Family("headrace_loader_stage_seconds_total",
             "Time of the threads of a stage: at work, or waiting for what it takes from or for what it gives to.",
             MetricType::Counter));
  AddStage("read", feed_.read_times(), &stages);
  AddStage("decode", engine_.decode_times(), &stages);
  MetricFamily& threads =
      families.emplace_back(Family("headrace_loader_decode_threads", "Threads that decode now.", MetricType::Gauge));
  threads.metric.push_back(Sample(MetricType::Gauge, static_cast<double>(engine_.decode_threads()), {}));
  MetricFamily& epoch = families.emplace_back(
      Family("headrace_loader_epoch", "The epoch that the loader is producing, from 0.", MetricType::Gauge));
  epoch.metric.push_back(Sample(MetricType::Gauge, static_cast<double>(engine_.epoch()), {}));
  MetricFamily& info =
      families.emplace_back(Family("headrace_loader_info", "What this loader serves; always 1.", MetricType::Gauge));
  const Plan& plan = feed_.plan();
  info.metric.push_back(Sample(MetricType::Gauge, 1,
                               {{"input", plan.input},
                                {"plan", plan.hash},
                                {"policy", std::string(PolicyName(plan.effective_policy))},
                                {"version", HEADRACE_VERSION}}));
  std::ostringstream text;
  prometheus::TextSerializer().Serialize(text, families);
  return text.str();
}

}  // namespace headrace::side
