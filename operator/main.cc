// headrace-operator: wiring. Started in order, stopped in reverse by the destructors.
#include <malloc.h>

#include <atomic>
#include <cstdio>
#include <memory>
#include <optional>
#include <thread>

#include "common/base/log.h"
#include "common/net/http_server.h"
#include "operator/admission/server.h"
#include "operator/config.h"
#include "operator/kube/controller.h"
#include "operator/kube/events.h"
#include "operator/kube/leader.h"
#include "operator/kube/path_access.h"
#include "operator/kube/transport.h"
#include "operator/kube/webhook_certificates.h"
#include "operator/kube/work_queue.h"
#include "operator/memory.h"
#include "operator/probe.h"
#include "operator/reconcile/peer_keys.h"
#include "operator/reconcile/reconciler.h"
#include "operator/signals.h"
#include "operator/watches.h"

namespace headrace::op {
namespace {

constexpr char kController[] = "distributedinput";
// A leader must notice that the API server does not answer before its lease is over; a scrape waits as long.
constexpr auto kUrgentCallTimeout = std::chrono::seconds(2);

Result<kube::TransportOptions> TransportOf(const Config& config) {
  if (config.api_server.empty()) return kube::InClusterOptions();
  kube::TransportOptions options;
  options.url = config.api_server;
  return options;
}

Status Run(Config config, const Signals& signals) {
  if (config.name_space.empty()) {
    ASSIGN_OR_RETURN(config.name_space, kube::InClusterNamespace());
  }
  ASSIGN_OR_RETURN(kube::TransportOptions endpoint, TransportOf(config));
  ASSIGN_OR_RETURN(const auto transport, kube::MakeTransport(endpoint));
  endpoint.call_timeout = kUrgentCallTimeout;
  ASSIGN_OR_RETURN(const auto urgent_transport, kube::MakeTransport(endpoint));
  Probe probe;
  kube::Client client(transport.get(), probe.Client());
  kube::Client urgent_client(urgent_transport.get(), probe.Client());
  kube::WorkQueue queue(probe.Queue(kController));
  // What changed before this replica led, another has seen to, or nobody: that is a backlog.
  std::atomic<bool> leading = false;
  Watches watches(
      transport.get(), &client,
      {.on_change =
           [&](const std::string& key) { queue.Add(key, leading ? kube::Priority::kNews : kube::Priority::kBacklog); },
       .on_call = [&](const std::string& resource) { return probe.Informer(resource); }});

  kube::WebhookCertificates::Options certificate_options;
  certificate_options.name_space = config.name_space;
  certificate_options.secret = config.certificate_secret;
  certificate_options.configuration = config.webhook_configuration;
  const std::string service = config.webhook_service + "." + config.name_space + ".svc";
  certificate_options.dns_names = {service, service + ".cluster.local"};
  kube::WebhookCertificates certificates(&client, certificate_options);
  certificates.Start();

  std::atomic<bool> draining = false;
  const auto ready = [&] { return watches.synced() && certificates.ready() && !draining; };
  const HttpHandler metrics = [&](const HttpRequest& request) -> HttpResponse {
    if (request.path != "/metrics") return {.status = 404, .body = "not found\n"};
    for (const auto& [resource, store] : watches.stores()) probe.SetCached(resource, store->Size());
    for (const ConditionCounts::Count& count : watches.conditions().Get())
      probe.SetInputs(count.condition, count.status, count.inputs);
    return {.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = probe.Render(kController, queue)};
  };
  const bool secure = config.secure_metrics_port != 0;
  const HttpHandler status = [&](const HttpRequest& request) -> HttpResponse {
    if (request.path == "/healthz" || request.path == "/livez") return {.body = "ok\n"};
    if (request.path == "/readyz")
      return ready() ? HttpResponse{.body = "ok\n"} : HttpResponse{.status = 503, .body = "not ready\n"};
    return secure ? HttpResponse{.status = 404, .body = "not found\n"} : metrics(request);
  };
  ASSIGN_OR_RETURN(const auto status_server, HttpServer::Start({.port = config.metrics_port, .threads = 2}, status));
  kube::PathAccess access(&urgent_client, {});
  std::unique_ptr<HttpServer> metrics_server;
  if (secure) {
    const HttpServerOptions options{
        .port = config.secure_metrics_port, .threads = 2, .tls = [&] { return certificates.pair(); }};
    ASSIGN_OR_RETURN(metrics_server, HttpServer::Start(options, [&](const HttpRequest& request) {
                       return access.Serve(request, metrics);
                     }));
  }

  AdmissionDeps admission;
  admission.inputs = &watches.inputs();
  admission.jobs = &watches.jobs();
  admission.stateful_sets = &watches.stateful_sets();
  admission.pods = &watches.pods();
  admission.config_maps = &watches.config_maps();
  admission.loader = config.loader;
  admission.on_review = [&](std::string_view result, std::string_view reason) { probe.OnReview(result, reason); };
  HttpServerOptions webhook = WebhookServerOptions();
  webhook.port = config.webhook_port;
  webhook.tls = [&] { return certificates.pair(); };
  const HttpHandler admit = MakeAdmissionHandler(admission);
  const HttpHandler admit_pod = probe.Timed(kInjectPath, admit), admit_job = probe.Timed(kInjectTemplatePath, admit);
  ASSIGN_OR_RETURN(const auto webhook_server, HttpServer::Start(webhook, [&](const HttpRequest& request) {
                     return request.path == kInjectTemplatePath ? admit_job(request) : admit_pod(request);
                   }));
  log::Info("started", {{"namespace", config.name_space},
                        {"webhook", std::to_string(webhook_server->port())},
                        {"status", std::to_string(status_server->port())},
                        {"metrics", std::to_string((secure ? metrics_server : status_server)->port())}});

  // Reconciling starts when the caches are whole: what is not in them would look deleted.
  while (!watches.synced())
    if (signals.Came()) return {};
  ::malloc_trim(0);  // the first lists' garbage
  log::Info("caches synced", {{"inputs", std::to_string(watches.inputs().Size())}});

  kube::ApiEventRecorder::Options event_options;
  event_options.reporting_instance = config.identity;
  event_options.on_drop = [&] { probe.OnEventDropped(); };
  kube::ApiEventRecorder events(&client, event_options);
  PeerKeys peer_keys(&client);
  OwnWrites own_writes;
  const Reconciler reconciler(
      {.client = &client,
       .inputs = &watches.inputs(),
       .pods = &watches.pods(),
       .config_maps = &watches.config_maps(),
       .services = &watches.services(),
       .jobs = &watches.jobs(),
       .stateful_sets = &watches.stateful_sets(),
       .events = &events,
       .peer_keys = &peer_keys,
       .own_writes = &own_writes,
       .has_time = [&](const std::string& key) { return queue.HasTimeFor(key); },
       .on_write = [&](const std::string& resource, bool written) { probe.OnWrite(resource, written); }});
  std::optional<kube::Controller> controller;
  const auto lead = [&] {
    leading = true;
    controller.emplace(
        kube::Controller::Options{kController, config.workers, probe.Controller(kController, config.workers)}, &queue,
        [&](const std::string& key) { return reconciler.Reconcile(key); });
    probe.SetLeader(config.lease, true);
  };
  std::atomic<bool> lost = false;
  std::optional<kube::LeaderElector> elector;
  if (config.lease.empty()) {
    lead();
  } else {
    probe.SetLeader(config.lease, false);
    kube::LeaderElector::Options election{config.name_space, config.lease, config.identity};
    election.on_lead = lead;
    election.on_stop = [&] { controller.reset(); };
    election.on_lose = [&] {
      lost = true;
      Signals::Raise();
    };
    elector.emplace(&urgent_client, election);
  }

  signals.Wait();
  log::Info("stopping", {{"drain_seconds", std::to_string(config.drain.count())}});
  draining = true;
  if (lost) return Unavailable("leadership lost: ending, so that only one replica reconciles");
  // Another replica may lead at once; the webhook answers until the Service has forgotten this one.
  elector.reset();
  std::this_thread::sleep_for(config.drain);
  return {};
}

}  // namespace
}  // namespace headrace::op

int main(int argc, char** argv) {
  headrace::op::BoundMemory();
  const headrace::op::Signals signals;
  const auto config = headrace::op::ParseConfig({argv + 1, argv + argc});
  const headrace::Status status = config.ok() ? headrace::op::Run(config.value(), signals) : config.status();
  if (status.ok()) return 0;
  headrace::log::Error("headrace-operator ends", {{"error", status.ToString()}});
  return 1;
}
