#include "operator/probe.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <sstream>

namespace headrace::op {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;
using prometheus::Registry;

const Histogram::BucketBoundaries kReconcileSeconds = {
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1,  1.25, 1.5,
    1.75,  2,    2.5,   3,    3.5, 4,    4.5, 5,    6,   7,    8,   9,    10,  15,  20,  25,  30,  40, 50,   60};
const Histogram::BucketBoundaries kQueueSeconds = {1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10, 100, 1000};
const Histogram::BucketBoundaries kCallSeconds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                                  0.25,  0.5,    1,     2.5,  5,     10,   30};

struct ProcessUse {
  double cpu_seconds = 0, resident_bytes = 0;
};

ProcessUse ReadProcess() {
  ProcessUse use;
  std::ifstream stat("/proc/self/stat");
  std::string text((std::istreambuf_iterator<char>(stat)), {});
  // The second field is the command in parentheses, which may hold anything; utime and stime are fields 14 and 15.
  std::istringstream fields(text.substr(std::min(text.size(), text.rfind(')') + 1)));
  std::string skipped;
  for (int field = 3; field < 14; ++field) fields >> skipped;
  double user = 0, system = 0;
  fields >> user >> system;
  use.cpu_seconds = (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  double pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> pages;
  use.resident_bytes = pages * static_cast<double>(::sysconf(_SC_PAGESIZE));
  return use;
}

}  // namespace

struct Probe::Metrics {
  Registry registry;

  Family<Counter>& CounterOf(const std::string& name, const std::string& help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
  }
  Family<Gauge>& GaugeOf(const std::string& name, const std::string& help) {
    return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
  }
  Family<Histogram>& HistogramOf(const std::string& name, const std::string& help) {
    return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
  }

  Family<Counter>& reconciles = CounterOf("controller_runtime_reconcile_total", "Reconciliations, by result");
  Family<Counter>& errors = CounterOf("controller_runtime_reconcile_errors_total", "Reconciliations that failed");
  Family<Counter>& terminal =
      CounterOf("controller_runtime_terminal_reconcile_errors_total", "Failures that are not tried again");
  Family<Counter>& panics =
      CounterOf("controller_runtime_reconcile_panics_total", "Exceptions out of a reconciliation");
  Family<Histogram>& reconcile_time =
      HistogramOf("controller_runtime_reconcile_time_seconds", "Length of a reconciliation");
  Family<Gauge>& max_workers = GaugeOf("controller_runtime_max_concurrent_reconciles", "Workers of a controller");
  Family<Gauge>& active_workers = GaugeOf("controller_runtime_active_workers", "Workers that reconcile now");

  Family<Gauge>& depth = GaugeOf("workqueue_depth", "Keys that wait for a worker, by priority");
  Family<Counter>& adds = CounterOf("workqueue_adds_total", "Keys added");
  Family<Counter>& retries = CounterOf("workqueue_retries_total", "Keys added again after a failure");
  Family<Histogram>& queue_time = HistogramOf("workqueue_queue_duration_seconds", "How long a key waits for a worker");
  Family<Histogram>& work_time = HistogramOf("workqueue_work_duration_seconds", "How long a worker has a key");
  Family<Gauge>& unfinished = GaugeOf("workqueue_unfinished_work_seconds", "Age of the work in progress, summed");
  Family<Gauge>& longest = GaugeOf("workqueue_longest_running_processor_seconds", "Age of the oldest work in progress");

  Family<Histogram>& webhook_latency =
      HistogramOf("controller_runtime_webhook_latency_seconds", "Length of an admission request");
  Family<Counter>& webhook_requests =
      CounterOf("controller_runtime_webhook_requests_total", "Admission requests, by HTTP status");
  Family<Gauge>& webhook_in_flight =
      GaugeOf("controller_runtime_webhook_requests_in_flight", "Admission requests being answered");
  Family<Counter>& injections =
      CounterOf("headrace_webhook_injections_total", "Pods reviewed: injected, skipped, denied or error, and why");

  Family<Counter>& requests = CounterOf("rest_client_requests_total", "Requests to the API server, by status");
  Family<Histogram>& request_time =
      HistogramOf("rest_client_request_duration_seconds", "Length of a request to the API server");
  Family<Counter>& request_retries =
      CounterOf("rest_client_request_retries_total", "Requests sent again after 429 or 503 with Retry-After");
  Family<Counter>& writes =
      CounterOf("headrace_operator_writes_total", "Objects that reconciliations want: written, or unchanged");
  Family<Gauge>& cached = GaugeOf("headrace_operator_cached_objects", "Objects in the operator's caches");
  Family<Gauge>& inputs = GaugeOf("headrace_operator_inputs", "Inputs by condition and its status");
  Family<Counter>& lists =
      CounterOf("headrace_operator_informer_calls_total", "Lists and watches that ended, by resource and result");
  Family<Counter>& events_dropped =
      CounterOf("headrace_operator_events_dropped_total", "Events not recorded since too many were waiting");
  Family<Gauge>& leader = GaugeOf("leader_election_master_status", "1 where this replica leads");

  Family<Counter>& cpu = CounterOf("process_cpu_seconds_total", "CPU time used");
  Family<Gauge>& resident = GaugeOf("process_resident_memory_bytes", "Resident memory");
};

Probe::Probe() : metrics_(std::make_unique<Metrics>()) {}
Probe::~Probe() = default;

kube::WorkQueue::Options Probe::Queue(const std::string& name) {
  const prometheus::Labels labels = {{"name", name}, {"controller", name}};
  Counter& adds = metrics_->adds.Add(labels);
  Counter& retries = metrics_->retries.Add(labels);
  Histogram& queued = metrics_->queue_time.Add(labels, kQueueSeconds);
  Histogram& worked = metrics_->work_time.Add(labels, kQueueSeconds);
  kube::WorkQueue::Options options;
  options.on_add = [&adds] { adds.Increment(); };
  options.on_retry = [&retries] { retries.Increment(); };
  options.on_get = [&queued](double seconds) { queued.Observe(seconds); };
  options.on_done = [&worked](double seconds) { worked.Observe(seconds); };
  return options;
}

kube::ControllerProbe Probe::Controller(const std::string& name, int workers) {
  Metrics& all = *metrics_;
  const prometheus::Labels labels = {{"controller", name}};
  all.max_workers.Add(labels).Set(workers);
  Gauge& active = all.active_workers.Add(labels);
  Histogram& time = all.reconcile_time.Add(labels, kReconcileSeconds);
  Counter& errors = all.errors.Add(labels);
  Counter& terminal = all.terminal.Add(labels);
  Counter& panics = all.panics.Add(labels);
  kube::ControllerProbe probe;
  probe.on_active = [&active](int delta) { active.Increment(delta); };
  probe.on_reconcile = [&, name](const std::string& result, double seconds) {
    time.Observe(seconds);
    const bool failed = result == "error" || result == "terminal_error" || result == "panic";
    // Of results, controller-runtime knows success, requeue, requeue_after and error.
    all.reconciles.Add({{"controller", name}, {"result", failed ? "error" : result}}).Increment();
    if (failed) errors.Increment();
    if (result == "terminal_error") terminal.Increment();
    if (result == "panic") panics.Increment();
  };
  return probe;
}

kube::ClientOptions Probe::Client() {
  kube::ClientOptions options;
  options.on_request = [this](std::string_view method, std::string_view code, double seconds) {
    metrics_->requests.Add({{"method", std::string(method)}, {"code", std::string(code)}}).Increment();
    metrics_->request_time.Add({{"verb", std::string(method)}}, kCallSeconds).Observe(seconds);
  };
  options.on_retry = [this](std::string_view method, std::string_view code) {
    metrics_->request_retries.Add({{"verb", std::string(method)}, {"code", std::string(code)}}).Increment();
  };
  return options;
}

std::function<void(const char* verb, const Status&)> Probe::Informer(const std::string& resource) {
  return [this, resource](const char* verb, const Status& status) {
    metrics_->lists.Add({{"resource", resource}, {"verb", verb}, {"result", std::string(CodeName(status.code()))}})
        .Increment();
  };
}

HttpHandler Probe::Timed(const std::string& webhook, HttpHandler handler) {
  const prometheus::Labels labels = {{"webhook", webhook}};
  Gauge& in_flight = metrics_->webhook_in_flight.Add(labels);
  Histogram& latency = metrics_->webhook_latency.Add(labels, kCallSeconds);
  return [this, webhook, &in_flight, &latency, handler = std::move(handler)](const HttpRequest& request) {
    const auto start = std::chrono::steady_clock::now();
    in_flight.Increment();
    HttpResponse response;
    try {
      response = handler(request);
    } catch (...) {
      response = {.status = 500, .body = "internal error\n"};
    }
    in_flight.Decrement();
    latency.Observe(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    metrics_->webhook_requests.Add({{"webhook", webhook}, {"code", std::to_string(response.status)}}).Increment();
    return response;
  };
}

void Probe::OnWrite(const std::string& resource, bool written) {
  metrics_->writes.Add({{"resource", resource}, {"result", written ? "written" : "unchanged"}}).Increment();
}

void Probe::SetCached(const std::string& resource, size_t objects) {
  metrics_->cached.Add({{"resource", resource}}).Set(static_cast<double>(objects));
}

void Probe::SetInputs(const std::string& condition, const std::string& status, int64_t inputs) {
  metrics_->inputs.Add({{"condition", condition}, {"status", status}}).Set(static_cast<double>(inputs));
}

void Probe::OnReview(std::string_view result, std::string_view reason) {
  metrics_->injections.Add({{"result", std::string(result)}, {"reason", std::string(reason)}}).Increment();
}

void Probe::OnEventDropped() { metrics_->events_dropped.Add({}).Increment(); }

void Probe::SetLeader(const std::string& lease, bool leads) {
  metrics_->leader.Add({{"name", lease}}).Set(leads ? 1 : 0);
}

std::string Probe::Render(const std::string& queue_name, const kube::WorkQueue& queue) {
  const kube::WorkQueue::Stats stats = queue.GetStats();
  const prometheus::Labels labels = {{"name", queue_name}, {"controller", queue_name}};
  const auto depth = [&](const char* priority, size_t keys) {
    metrics_->depth.Add({{"name", queue_name}, {"controller", queue_name}, {"priority", priority}})
        .Set(static_cast<double>(keys));
  };
  depth("0", stats.news);  // as controller-runtime numbers them
  depth("-100", stats.backlog);
  depth("-200", stats.put_off);
  metrics_->unfinished.Add(labels).Set(stats.unfinished_seconds);
  metrics_->longest.Add(labels).Set(stats.longest_seconds);
  const ProcessUse use = ReadProcess();
  Counter& cpu = metrics_->cpu.Add({});
  cpu.Increment(std::max(0.0, use.cpu_seconds - cpu.Value()));
  metrics_->resident.Add({}).Set(use.resident_bytes);
  return prometheus::TextSerializer().Serialize(metrics_->registry.Collect());
}

}  // namespace headrace::op
