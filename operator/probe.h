// All metrics of the operator. Names are controller-runtime's where it has them, so that known dashboards work; labels
// are bounded. Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "common/net/http_server.h"
#include "operator/kube/client.h"
#include "operator/kube/controller.h"
#include "operator/kube/work_queue.h"

namespace headrace::op {

// Must outlive whatever got a callback from it.
class Probe {
 public:
  Probe();
  ~Probe();
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  // Options that count: for a queue and a controller of this name, a client, an informer's lists and watches.
  kube::WorkQueue::Options Queue(const std::string& name);
  kube::ControllerProbe Controller(const std::string& name, int workers);
  kube::ClientOptions Client();
  std::function<void(const char* verb, const Status&)> Informer(const std::string& resource);

  // The handler with its latency, codes and requests in flight counted under `webhook`.
  HttpHandler Timed(const std::string& webhook, HttpHandler handler);
  // An object that a reconciliation wants, and whether it had to be written.
  void OnWrite(const std::string& resource, bool written);
  // What the caches hold now, and how many inputs have that condition ("Ready") at that status ("True").
  void SetCached(const std::string& resource, size_t objects);
  void SetInputs(const std::string& condition, const std::string& status, int64_t inputs);
  void OnReview(std::string_view result, std::string_view reason);
  void OnEventDropped();
  void SetLeader(const std::string& lease, bool leads);

  // In Prometheus' text format. The depth and age of what is in `queue` are taken now.
  std::string Render(const std::string& queue_name, const kube::WorkQueue& queue);

 private:
  struct Metrics;
  std::unique_ptr<Metrics> metrics_;
};

}  // namespace headrace::op
