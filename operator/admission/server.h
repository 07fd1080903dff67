// The mutating webhook: answers AdmissionReviews (admission.k8s.io/v1) for pods that opted in, and for Jobs whose
// template asks for its loader, out of the operator's caches alone. It calls no API and has no side effects, so a dry
// run is answered like any other request.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "common/net/http_server.h"
#include "operator/admission/inject.h"
#include "operator/kube/store.h"

namespace headrace::op {

inline constexpr char kInjectPath[] = "/inject-pod";
inline constexpr char kInjectTemplatePath[] = "/inject-template";

struct AdmissionDeps {
  // Not owned; must outlive the handler.
  const kube::Store* inputs = nullptr;
  const kube::Store* jobs = nullptr;
  const kube::Store* stateful_sets = nullptr;
  // Where a pod's siblings and the plan they are pinned to are found; indexed by InputKeyOf (operator/pod/input_key.h).
  const kube::Store* pods = nullptr;
  const kube::Store* config_maps = nullptr;

  LoaderOptions loader;

  // How long a request may wait for an input or an owner made a moment ago to reach the caches.
  std::chrono::milliseconds input_wait{1000};
  std::chrono::milliseconds owner_wait{3000};
  // How many may wait at a time: fewer than the server has threads, so that others are answered meanwhile.
  int most_waiting = 8;

  // Called once for each review. result: "injected", "skipped", "denied" or "error"; reason: one of a few CamelCase
  // words. May be null.
  std::function<void(std::string_view result, std::string_view reason)> on_review;
};

// Threads and timeouts of the server in front of the handler; port and certificate are the caller's to set.
HttpServerOptions WebhookServerOptions();

// Serves POST /inject-pod and /inject-template; anything else is 404. Thread-safe.
HttpHandler MakeAdmissionHandler(AdmissionDeps deps);

}  // namespace headrace::op
