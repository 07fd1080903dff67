// headrace-loader: reads one worker's share of an input and hands it to the pod's replicas through rings.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "common/base/cpus.h"
#include "common/base/log.h"
#include "common/net/http_server.h"
#include "common/spec/collective.h"
#include "common/spec/names.h"
#include "sidecar/collective/agreement.h"
#include "sidecar/device/device.h"
#include "sidecar/device/nccl.h"
#include "sidecar/loader/config.h"
#include "sidecar/loader/device_choice.h"
#include "sidecar/loader/engine.h"
#include "sidecar/loader/function_feed.h"
#include "sidecar/loader/handshake_server.h"
#include "sidecar/loader/pipeline.h"
#include "sidecar/loader/probe.h"
#include "sidecar/loader/shared_feed.h"
#include "sidecar/source/index_files.h"

namespace headrace::side {
namespace {

constexpr char kUsage[] =
    R"(headrace-loader: the sidecar that feeds one worker's replicas. The webhook (or `headrace run`) starts it.

It takes its configuration from the environment:
  HEADRACE_PLAN                  path of plan.json
  HEADRACE_DIR                   run directory, for rings and socket (default /run/headrace)
  HEADRACE_WORKER_INDEX          0 ..  number of workers - 1 (default 0)
  HEADRACE_NUM_WORKERS           (default 1)
  HEADRACE_REPLICAS_PER_WORKER   (default 1)
  HEADRACE_RUN_ID                seeds shuffles without a seed; the same on every worker
  HEADRACE_DATA_DIR              what relative paths are relative to (default /data)
  HEADRACE_CACHE_DIR             where objects are kept, if the input says so (default /var/cache/headrace)
  HEADRACE_LISTEN                address:port of /metrics, /healthz and /startupz (default: none)
  HEADRACE_COORDINATOR           where worker 0's loader is met, to end epochs together: host:port or unix:/path
  HEADRACE_PEER_TLS_DIR          ca.crt, tls.crt and tls.key, for host:port
  HEADRACE_FUNCTION_TIMEOUT      seconds to wait for the process of spec.source.function (default 60)
  HEADRACE_SERVE_ERRORS          1: stay up to tell clients of an error at start

With --index (`headrace index`) it keeps beside the files of HEADRACE_PLAN where their records begin, and ends.
)";

// Where the kubelet reads why a container ended; the operator reads it from the pod's status.
void WriteTerminationMessage(const Status& error) {
  std::ofstream file("/dev/termination-log", std::ios::app);
  file << error.ToString().substr(0, 4000);
}

Result<Plan> ReadPlan(const std::string& path) {
  std::ifstream file(path);
  if (!file) return NotFound(std::string(names::kEnvPlan) + ": " + path + " cannot be read: " + std::strerror(errno));
  const nlohmann::json json = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return InvalidArgument(path + ": not JSON");
  return ParsePlan(json);
}

ring::HandshakeReply Describe(const Feed& feed, const DeviceChoice& device) {
  const Plan& plan = feed.plan();
  ring::HandshakeReply reply;
  reply.plan_hash = plan.hash;
  reply.input = plan.input;
  reply.topology = feed.topology();
  for (const Transformation& transformation : plan.spec.pipeline) {
    if (const auto* batch = std::get_if<headrace::Batch>(&transformation)) reply.global_batch_size = batch->size;
  }
  reply.effective_policy = PolicyName(plan.effective_policy);
  reply.warnings = plan.warnings;
  reply.element_spec = feed.element_spec();
  reply.cardinality = feed.cardinality();
  reply.run_seed = feed.run_seed();
  reply.memory = plan.spec.delivery.memory;
  reply.memory_reason = device.reason;
  for (const auto& ring : device.rings) reply.device_rings.push_back({ring->gpu(), ring->generation()});
  reply.device_only = WhyDeviceOnly(feed);
  reply.on_demand = PrefetchSteps(feed) == 0;
  return reply;
}

// Becomes true when SIGTERM or SIGINT comes. The signals must be blocked in every thread.
class StopOnSignal {
 public:
  StopOnSignal() : thread_([this] { Wait(); }) {}
  ~StopOnSignal() {
    pthread_kill(thread_.native_handle(), SIGTERM);
    thread_.join();
  }
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;

  const std::atomic<bool>& stopped() const { return stopped_; }
  // Also calls `hook` then, on a thread of its own, or now if it has come already.
  void Tell(std::function<void()> hook) {
    const std::lock_guard lock(mutex_);
    hook_ = std::move(hook);
    if (stopped_ && hook_) hook_();
  }
  void Await() const { stopped_.wait(false); }

 private:
  void Wait() {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    int signal = 0;
    sigwait(&signals, &signal);
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    stopped_.notify_all();
    if (hook_) hook_();
  }

  std::atomic<bool> stopped_{false};
  std::mutex mutex_;
  std::function<void()> hook_;
  std::thread thread_;
};

Result<std::unique_ptr<HttpServer>> ServeHttp(const LoaderConfig& config, const Probe* probe) {
  if (config.listen_address.empty()) return std::unique_ptr<HttpServer>();
  HttpServerOptions options;
  options.address = config.listen_address;
  options.port = config.listen_port;
  return HttpServer::Start(options, [probe](const HttpRequest& request) -> HttpResponse {
    if (request.path == "/healthz" || request.path == "/startupz") return {200, "text/plain", "ok\n"};
    if (request.path == "/metrics" && probe != nullptr) {
      return {200, "text/plain; version=0.0.4; charset=utf-8", probe->Render()};
    }
    return {404, "text/plain", "there are /metrics, /healthz and /startupz\n"};
  });
}

// For `headrace top --dir`. Without it the loader is as good: nobody is told of a failure.
void WriteMetricsAddress(const LoaderConfig& config, uint16_t port) {
  const bool all_addresses = config.listen_address == "0.0.0.0";
  const std::string path = config.run_dir + "/" + names::kMetricsFile;
  std::ofstream(path + ".new") << (all_addresses ? "127.0.0.1" : config.listen_address) << ":" << port << "\n";
  std::error_code ignored;
  std::filesystem::rename(path + ".new", path, ignored);  // whole, for whoever reads it at this moment
}

// A loader that cannot start ends at once the first time, so that its message is in the pod's status; the next attempt
// in the same run directory stays up, so that the trainer starts and gets the same message as an exception.
int FailAtStart(const LoaderConfig& config, const StopOnSignal& stop, const Status& error) {
  if (error.code() == Code::kCancelled) return 0;  // stopped while it started
  log::Error("cannot start", {{"error", error.ToString()}});
  WriteTerminationMessage(error);
  const std::string marker = config.run_dir + "/failed";
  if (!config.serve_errors && !std::filesystem::exists(marker)) {
    std::ofstream(marker) << error.ToString() << "\n";
    return 1;
  }
  auto handshake = HandshakeServer::Start(config.run_dir + "/" + names::kSocketFile, error);
  if (!handshake.ok()) {
    log::Error("cannot serve the error", {{"error", handshake.status().ToString()}});
    return 1;
  }
  const auto http = ServeHttp(config, nullptr);
  if (!http.ok()) return 1;
  stop.Await();
  return 1;
}

Result<std::unique_ptr<Pipeline>> MakePipeline(const LoaderConfig& config, Plan plan, const Topology& topology,
                                               size_t threads, Signal* signal, LastMaps last_maps) {
  return Pipeline::Create(std::move(plan), topology, config.data_dir, config.run_id,
                          config.run_dir + "/" + names::kQuarantineFile, threads, signal, last_maps);
}

Result<std::unique_ptr<Feed>> MakeFeed(const LoaderConfig& config, const std::atomic<bool>* stop, size_t threads,
                                       Signal* signal) {
  ASSIGN_OR_RETURN(Plan plan, ReadPlan(config.plan_path));
  if (std::holds_alternative<FunctionSource>(plan.spec.source)) {
    auto peer = FunctionPeer::Accept(config.run_dir, config.function_timeout_ms, stop);
    RETURN_IF_ERROR(peer, "spec.source.function: worker " + std::to_string(config.topology.worker_index));
    ASSIGN_OR_RETURN(auto feed, FunctionFeed::Create(std::move(plan), config.topology, std::move(*peer)));
    return std::unique_ptr<Feed>(std::move(feed));
  }
  const MapsChoice maps = ChooseLastMaps(plan.spec.delivery);
  ASSIGN_OR_RETURN(auto pipeline, MakePipeline(config, std::move(plan), config.topology, threads, signal, maps.who));
  if (!maps.why_not.empty() && !FindGpuImages(pipeline->plan().spec).empty()) {
    log::Warning("the CPU does the last maps of images", {{"reason", maps.why_not}});
  }
  return std::unique_ptr<Feed>(std::move(pipeline));
}

// With the other workers' loaders, on the ends of epochs; null where there is nothing to agree on.
Result<std::unique_ptr<Agreement>> Agree(const LoaderConfig& config, const Feed& feed) {
  if (config.coordinator.empty() || !AgreesOnEnds(feed.plan(), feed.topology())) return std::unique_ptr<Agreement>();
  AgreementOptions options;
  options.topology = config.topology;
  options.run_id = config.run_id;
  options.plan_hash = feed.plan().hash;
  options.coordinator = config.coordinator;
  options.tls_dir = config.peer_tls_dir;
  return Agreement::Start(std::move(options));
}

// What worker 0 reads for all: see ShareReader.
Result<std::unique_ptr<ShareReader>> MakeShareReader(const LoaderConfig& config, const Feed& own, bool scatters,
                                                     size_t threads) {
  Plan plan = own.plan();
  Topology topology = own.topology();
  const int64_t replicas = topology.replicas_per_worker;
  if (scatters) {
    plan.effective_policy = AutoShardPolicy::kOff;
    topology = {1, 0, topology.replicas_in_sync()};
  }
  auto signal = std::make_unique<Signal>();
  // As this worker's own: what is handed over lies as it will lie in the slots.
  const LastMaps last_maps = own.gpu_images().empty() ? LastMaps::kOnCpu : LastMaps::kOnGpu;
  ASSIGN_OR_RETURN(auto feed, MakePipeline(config, std::move(plan), topology, threads, signal.get(), last_maps));
  return std::make_unique<ShareReader>(std::move(feed), std::move(signal), threads,
                                       scatters ? own.topology().num_workers : 1, replicas);
}

// The feed itself, or one that gets its data from worker 0, where the plan says so and there is something to be spared.
Result<std::unique_ptr<Feed>> Share(const LoaderConfig& config, std::unique_ptr<Feed> own, Agreement* agreement,
                                    size_t threads, Signal* signal) {
  const Exchanged exchanged = WhatIsExchanged(own->plan());
  if (agreement == nullptr || exchanged == Exchanged::kNothing) return own;
  SharedFeedOptions options;
  options.scatters = exchanged == Exchanged::kParts;
  if (options.scatters) {
    ASSIGN_OR_RETURN(const bool reads_all, own->ReadsAll());
    if (!reads_all) return own;
  }
  const Topology& topology = own->topology();
  if (topology.worker_index == 0) {
    ASSIGN_OR_RETURN(options.reader, MakeShareReader(config, *own, options.scatters, threads));
  }
  const Collective& collective = own->plan().spec.distribution.collective;
  const ExchangeOptions exchange{topology.num_workers, topology.worker_index, collective.timeout_seconds * 1000};
  options.signal = signal;
  options.falls_back = collective.falls_back;
  options.agreement = agreement;
  options.open = [exchange] { return device::OpenNcclExchange(exchange); };
  options.own = std::move(own);
  return std::unique_ptr<Feed>(std::make_unique<SharedFeed>(std::move(options)));
}

int Serve(const LoaderConfig& config) {
  StopOnSignal stop;
  Signal signal;
  const size_t threads = UsableCpus();
  // Nothing has been handed out yet that would have to be ended in order.
  stop.Tell([] { std::_Exit(0); });
  auto own = MakeFeed(config, &stop.stopped(), threads, &signal);
  stop.Tell(nullptr);
  if (!own.ok()) return FailAtStart(config, stop, own.status());
  auto rings = Engine::OpenRings(config.run_dir, **own);
  if (!rings.ok()) return FailAtStart(config, stop, rings.status());
  auto device = ChooseDevice(**own, *rings);
  if (!device.ok()) return FailAtStart(config, stop, device.status());
  const Status lent = (*own)->LendRings(*rings);
  if (!lent.ok()) return FailAtStart(config, stop, lent);
  auto agreement = Agree(config, **own);
  if (!agreement.ok()) return FailAtStart(config, stop, agreement.status());
  const auto feed = Share(config, std::move(*own), agreement->get(), threads, &signal);
  if (!feed.ok()) return FailAtStart(config, stop, feed.status());
  WorkPool pool(threads);
  Engine engine(feed->get(), &*rings, &device->rings, &pool, &signal, agreement->get());
  const Probe probe(feed->get(), &engine, &*rings);
  HandshakeOffer offer{Describe(**feed, *device), {}, &device->rings};
  for (const auto& ring : *rings) offer.ring_fds.push_back(ring->fd());
  const auto handshake = HandshakeServer::Start(config.run_dir + "/" + names::kSocketFile, std::move(offer));
  if (!handshake.ok()) return FailAtStart(config, stop, handshake.status());
  const auto http = ServeHttp(config, &probe);
  if (!http.ok()) return FailAtStart(config, stop, http.status());
  if (*http != nullptr) WriteMetricsAddress(config, (*http)->port());
  std::error_code ignored;
  std::filesystem::remove(config.run_dir + "/failed", ignored);

  const Plan& plan = (*feed)->plan();
  for (const std::string& warning : plan.warnings) log::Warning(warning);
  for (const std::string& warning : TopologyWarnings(plan, config.topology)) log::Warning(warning);
  log::Info("serving", {{"input", plan.input},
                        {"plan", plan.hash},
                        {"policy", std::string(PolicyName(plan.effective_policy))},
                        {"worker", std::to_string(config.topology.worker_index)},
                        {"workers", std::to_string(config.topology.num_workers)},
                        {"replicas", std::to_string(config.topology.replicas_per_worker)},
                        {"memory", MemoryText(plan.spec.delivery.memory, *device)},
                        {"loaderGpus", device::GpuText(device::Probe())},
                        {"elementSpec", ToString((*feed)->element_spec())}});

  stop.Tell([&feed] { (*feed)->Stop(); });
  const Status outcome = engine.Run(stop.stopped());
  stop.Tell(nullptr);
  const bool stopped = outcome.code() == Code::kCancelled && stop.stopped();
  if (!outcome.ok() && !stopped) {
    log::Error("the input failed", {{"error", outcome.ToString()}});
    WriteTerminationMessage(outcome);
    stop.Await();  // clients are still to be told
  }
  const int code = outcome.ok() || stopped ? 0 : 1;
  // What a stream waits for may be a trainer that never comes to it; the driver lets go of all when the process ends.
  const auto busy = [](const auto& ring) { return !ring->idle(); };
  if (std::any_of(device->rings.begin(), device->rings.end(), busy)) std::_Exit(code);
  return code;
}

int Index(const LoaderConfig& config) {
  const auto print = [](const IndexedFile& file) {
    std::printf("%s: %lld records%s\n", file.path.c_str(), static_cast<long long>(file.records),
                file.made ? "" : ", as its index says");
    std::fflush(stdout);
  };
  const Result<Plan> plan = ReadPlan(config.plan_path);
  const Status status = plan.ok() ? IndexFiles(plan->spec, config.data_dir, print) : plan.status();
  if (!status.ok()) std::fprintf(stderr, "headrace: %s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}

int Main(int argc, char** argv) {
  const bool index = argc == 2 && std::strcmp(argv[1], "--index") == 0;
  if (argc > 1 && !index) {
    const bool help = std::strcmp(argv[1], "--help") == 0 || std::strcmp(argv[1], "-h") == 0;
    const bool version = std::strcmp(argv[1], "--version") == 0;
    (help || version ? std::cout : std::cerr)
        << (version ? "headrace-loader " HEADRACE_VERSION "\n" : std::string(kUsage));
    return help || version ? 0 : 2;
  }
  if (index) {
    const Result<LoaderConfig> config = ReadConfig();
    if (config.ok()) return Index(*config);
    std::fprintf(stderr, "headrace: %s\n", config.status().message().c_str());
    return 2;
  }
  // Blocked before any thread starts, so that sigwait alone takes them. SIGPIPE: a client that goes is no reason to
  // end.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  const Result<LoaderConfig> config = ReadConfig();
  if (!config.ok()) {
    log::Error("bad configuration", {{"error", config.status().ToString()}});
    WriteTerminationMessage(config.status());
    return 2;
  }
  return Serve(*config);
}

}  // namespace
}  // namespace headrace::side

int main(int argc, char** argv) {
  try {
    return headrace::side::Main(argc, argv);
  } catch (const std::exception& error) {
    headrace::log::Error("ended by an unexpected exception", {{"error", error.what()}});
    return 3;
  }
}
