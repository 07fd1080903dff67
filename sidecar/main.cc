// headrace-loader: reads one worker's share of an input and hands it to the pod's replicas through rings.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>

#include "common/base/log.h"
#include "common/net/http_server.h"
#include "common/spec/names.h"
#include "sidecar/device/device.h"
#include "sidecar/loader/config.h"
#include "sidecar/loader/engine.h"
#include "sidecar/loader/handshake_server.h"
#include "sidecar/loader/pipeline.h"
#include "sidecar/loader/probe.h"

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
  HEADRACE_COORDINATOR           where several workers' loaders meet to agree on ends: host:port of worker 0's (with
                                 mutual TLS), or unix:/path; worker 0 listens there
  HEADRACE_PEER_TLS_DIR          ca.crt, tls.crt and tls.key of the loaders
  HEADRACE_LISTEN                address:port of /metrics, /healthz and /startupz (default: none)
  HEADRACE_SERVE_ERRORS          1: stay up to tell clients of an error at start
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

ring::HandshakeReply Describe(const Feed& feed) {
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
  return reply;
}

// Ends the process's wait when SIGTERM or SIGINT comes. The signals must be blocked in every thread.
void WaitForSignal() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  int signal = 0;
  sigwait(&signals, &signal);
}

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

// A loader that cannot start ends at once the first time, so that its message is in the pod's status; the next attempt
// in the same run directory stays up, so that the trainer starts and gets the same message as an exception.
int FailAtStart(const LoaderConfig& config, const Status& error) {
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
  WaitForSignal();
  return 1;
}

Result<std::unique_ptr<Feed>> MakeFeed(const LoaderConfig& config) {
  ASSIGN_OR_RETURN(Plan plan, ReadPlan(config.plan_path));
  ASSIGN_OR_RETURN(auto pipeline, Pipeline::Create(std::move(plan), config.topology, config.data_dir, config.run_id));
  return std::unique_ptr<Feed>(std::move(pipeline));
}

int Serve(const LoaderConfig& config) {
  auto feed = MakeFeed(config);
  if (!feed.ok()) return FailAtStart(config, feed.status());
  auto rings = Engine::OpenRings(config.run_dir, **feed);
  if (!rings.ok()) return FailAtStart(config, rings.status());
  Engine engine(feed->get(), &*rings);
  const Probe probe(feed->get(), &engine, &*rings);
  HandshakeOffer offer{Describe(**feed), {}};
  for (const auto& ring : *rings) offer.ring_fds.push_back(ring->fd());
  const auto handshake = HandshakeServer::Start(config.run_dir + "/" + names::kSocketFile, std::move(offer));
  if (!handshake.ok()) return FailAtStart(config, handshake.status());
  const auto http = ServeHttp(config, &probe);
  if (!http.ok()) return FailAtStart(config, http.status());
  std::error_code ignored;
  std::filesystem::remove(config.run_dir + "/failed", ignored);

  const Plan& plan = (*feed)->plan();
  for (const std::string& warning : plan.warnings) log::Warning(warning);
  log::Info("serving", {{"input", plan.input},
                        {"plan", plan.hash},
                        {"policy", std::string(PolicyName(plan.effective_policy))},
                        {"worker", std::to_string(config.topology.worker_index)},
                        {"workers", std::to_string(config.topology.num_workers)},
                        {"replicas", std::to_string(config.topology.replicas_per_worker)},
                        {"memory", device::HostReason(device::Probe())},
                        {"elementSpec", ToString((*feed)->element_spec())}});

  std::atomic<bool> stop{false};
  Status outcome;
  std::thread worker([&] {
    outcome = engine.Run(stop);
    if (!outcome.ok()) log::Error("the input failed", {{"error", outcome.ToString()}});
  });
  WaitForSignal();
  stop = true;
  worker.join();
  if (!outcome.ok()) WriteTerminationMessage(outcome);
  return outcome.ok() ? 0 : 1;
}

int Main(int argc, char** argv) {
  if (argc > 1) {
    const bool help = std::strcmp(argv[1], "--help") == 0 || std::strcmp(argv[1], "-h") == 0;
    const bool version = std::strcmp(argv[1], "--version") == 0;
    (help || version ? std::cout : std::cerr)
        << (version ? "headrace-loader " HEADRACE_VERSION "\n" : std::string(kUsage));
    return help || version ? 0 : 2;
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
