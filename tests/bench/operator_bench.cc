// How fast the operator is in process, and what it keeps in memory: one line a figure, the goal beside it.
//
//   operator_bench [INPUTS]     default 10000
//
// The API server is the tests' own (tests/fakes/api.h), without a socket: this measures the operator alone.
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "common/spec/names.h"
#include "operator/admission/server.h"
#include "operator/pod/injected.h"
#include "operator/pod/input_key.h"
#include "operator/reconcile/reconciler.h"
#include "operator/watches.h"
#include "tests/fakes/api.h"

namespace headrace::op {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

double Seconds(Clock::time_point since) { return std::chrono::duration<double>(Clock::now() - since).count(); }

// Of the calling thread's processor: what the clock would say on a core that nobody else uses.
double ProcessorSeconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double HeapBytes() {
  const struct mallinfo2 info = ::mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd);
}

double At(std::vector<double>& values, double part) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(part * static_cast<double>(values.size() - 1))];
}

// What many calls of one kind took, one after another, by the clock and on the processor.
class Laps {
 public:
  template <typename Call>
  void Take(Call call) {
    const Clock::time_point begin = Clock::now();
    const double processor = ProcessorSeconds();
    call();
    processor_.push_back(ProcessorSeconds() - processor);
    clock_.push_back(Seconds(begin));
  }
  void Print(const char* name, int goal_a_second, double goal_p99_ms) {
    const double busy = std::accumulate(processor_.begin(), processor_.end(), 0.0);
    std::printf("%-18s a_second_on_one_core %8.0f   goal %d; %.0f by the clock\n", name,
                static_cast<double>(processor_.size()) / busy, goal_a_second,
                static_cast<double>(clock_.size()) / std::accumulate(clock_.begin(), clock_.end(), 0.0));
    std::printf("%-18s processor_p50_ms     %8.3f   %.3f by the clock\n", name, 1e3 * At(processor_, 0.5),
                1e3 * At(clock_, 0.5));
    std::printf("%-18s processor_p99_ms     %8.3f   goal %.0f; %.3f by the clock\n", name, 1e3 * At(processor_, 0.99),
                goal_p99_ms, 1e3 * At(clock_, 0.99));
  }

 private:
  std::vector<double> processor_, clock_;
};

json Input(const std::string& name) {
  json input = json::parse(R"({
    "apiVersion": "headrace.dev/v1alpha1", "kind": "DistributedInput",
    "metadata": {"namespace": "ml", "generation": 1},
    "spec": {
      "source": {"files": {"paths": ["/data/train-*.tfrecord"]}},
      "features": [{"name": "x", "dtype": "float32", "shape": [8]}, {"name": "label", "dtype": "int64"}],
      "pipeline": [{"shuffle": {"bufferSize": 10000, "seed": 7}}, {"batch": {"size": 1024}}],
      "distribution": {"replicasPerWorker": 8}}})");
  input["metadata"]["name"] = name;
  input["metadata"]["uid"] = "uid-" + name;
  return input;
}

json Pod(const std::string& name, int index) {
  json pod = json::parse(R"({
    "metadata": {
      "namespace": "ml",
      "labels": {"headrace.dev/input": "input-0", "batch.kubernetes.io/job-name": "train"},
      "ownerReferences": [
        {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "job-1", "controller": true}]},
    "spec": {"containers": [{
      "name": "trainer", "image": "registry.example/trainer:1", "command": ["python", "/app/train.py"],
      "resources": {"limits": {"nvidia.com/gpu": 8, "memory": "64Gi"}}}]}})");
  pod["metadata"]["name"] = name;
  pod["metadata"]["uid"] = "uid-" + name;
  pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] = std::to_string(index);
  return pod;
}

class NoEvents : public kube::EventRecorder {
  void Record(const json&, kube::EventType, const std::string&, const std::string&, const std::string&) override {}
};

// Every input from nothing to Accepted, one worker.
void Reconciles(int inputs) {
  kube::FakeApi api;
  kube::Client client(&api, {});
  for (int i = 0; i < inputs; ++i) api.Put(kube::kInputs, Input("input-" + std::to_string(i)));
  const double before = HeapBytes();
  const Clock::time_point start = Clock::now();
  Watches watches(&api, &client, {.on_change = [](const std::string&) {}});
  api.WaitUntil([&] { return watches.synced(); });
  const double synced = Seconds(start);
  const double cached = HeapBytes() - before;
  NoEvents events;
  PeerKeys peer_keys(&client);
  OwnWrites own_writes;
  const Reconciler reconciler({.client = &client,
                               .inputs = &watches.inputs(),
                               .pods = &watches.pods(),
                               .config_maps = &watches.config_maps(),
                               .services = &watches.services(),
                               .jobs = &watches.jobs(),
                               .stateful_sets = &watches.stateful_sets(),
                               .events = &events,
                               .peer_keys = &peer_keys,
                               .own_writes = &own_writes});
  int done = 0;
  const auto reconcile_all = [&] {
    Laps laps;
    for (int i = 0; i < inputs; ++i) {
      const std::string key = "ml/input-" + std::to_string(i);
      laps.Take([&] { done += reconciler.Reconcile(key).status.ok() ? 1 : 0; });
    }
    return laps;
  };
  std::printf("cache_sync_seconds            %10.2f   of %d inputs\n", synced, inputs);
  std::printf("cache_bytes_an_input          %10.0f   before its plan and Service\n", cached / inputs);
  reconcile_all().Print("reconcile_new", 500, 10);  // a plan, a Service, keys and the status made for each
  std::printf("accepted                      %10d   of %d\n", done, inputs);
  const size_t writes = api.CountCalls("PATCH");
  reconcile_all().Print("reconcile_again", 500, 10);
  std::printf("written_again                 %10zu   goal 0\n", api.CountCalls("PATCH") - writes);
}

// A gang's pods, one after another: what one core does.
void Injections(int inputs) {
  constexpr int kPods = 1028;
  kube::Store all_inputs, jobs, stateful_sets, pods(InputKeyOf), config_maps(InputKeyOf);
  for (int i = 0; i < inputs; ++i) all_inputs.Put(std::make_shared<const json>(Input("input-" + std::to_string(i))));
  jobs.Put(std::make_shared<const json>(json{{"metadata", {{"name", "train"}, {"namespace", "ml"}, {"uid", "job-1"}}},
                                             {"spec", {{"completions", kPods}}}}));
  AdmissionDeps deps;
  deps.inputs = &all_inputs;
  deps.jobs = &jobs;
  deps.stateful_sets = &stateful_sets;
  deps.pods = &pods;
  deps.config_maps = &config_maps;
  deps.loader.image = "registry.example/loader:1";
  int injected = 0;
  deps.on_review = [&](std::string_view result, std::string_view) { injected += result == "injected" ? 1 : 0; };
  const HttpHandler handler = MakeAdmissionHandler(deps);
  std::vector<std::string> reviews;
  for (int i = 0; i < kPods; ++i) {
    reviews.push_back(json{{"apiVersion", "admission.k8s.io/v1"},
                           {"kind", "AdmissionReview"},
                           {"request",
                            {{"uid", "r"},
                             {"operation", "CREATE"},
                             {"namespace", "ml"},
                             {"resource", {{"resource", "pods"}}},
                             {"object", Pod("train-" + std::to_string(i), i)}}}}
                          .dump());
  }
  Laps laps;
  for (const std::string& review : reviews) laps.Take([&] { handler({"POST", kInjectPath, "", review}); });
  laps.Print("inject", 2000, 5);
  std::printf("injected                      %10d   of %d\n", injected, kPods);
}

// Injected pods that run, as the API server shows them, in the cache.
void CachedPods() {
  constexpr int kPods = 10000;
  json pod = Pod("train-xxxxx-yyyyy", 0);
  pod["apiVersion"] = "v1";
  pod["kind"] = "Pod";
  pod["metadata"]["resourceVersion"] = "123456789";
  pod["metadata"]["creationTimestamp"] = "2026-01-02T03:04:05Z";
  pod["metadata"]["annotations"][names::kInjectedAnnotation] = "0123456789abcdef";
  json env = json::array();
  for (const char* name : {names::kEnvDir, names::kEnvPlan, names::kEnvWorkerIndex, names::kEnvNumWorkers,
                           names::kEnvReplicasPerWorker, names::kEnvRunId, names::kEnvDataDir, names::kEnvListen}) {
    env.push_back({{"name", name}, {"value", "e7a3c1f0-1111-2222-3333-444455556666"}});
  }
  pod["spec"]["initContainers"] = json::array({json{{"name", names::kLoaderContainer}, {"env", env}}});
  pod["status"] = json::parse(R"({
    "phase": "Running", "podIP": "10.0.0.1",
    "initContainerStatuses": [{"name": "headrace-loader", "ready": true,
                               "state": {"running": {"startedAt": "2026-01-02T03:04:05Z"}}}]})");
  kube::Store store(InputKeyOf);
  const double before = HeapBytes();
  for (int i = 0; i < kPods; ++i) {
    json copy = pod;
    copy["metadata"]["name"] = "train-xxxxx-" + std::to_string(i);
    SlimPod(copy);
    store.Put(std::make_shared<const json>(std::move(copy)));
  }
  std::printf("cache_bytes_a_pod             %10.0f   goal 2048\n", (HeapBytes() - before) / kPods);
}

}  // namespace
}  // namespace headrace::op

int main(int argc, char** argv) {
  const int inputs = argc > 1 ? std::atoi(argv[1]) : 10000;
  headrace::op::CachedPods();
  headrace::op::Injections(inputs);
  headrace::op::Reconciles(inputs);
}
