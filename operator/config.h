// The operator's settings: flags of the form --name=value, checked here.
//
//   --loader-image=REF            image injected as the loader (required)
//   --image-pull-policy=POLICY    of the loader: Always, IfNotPresent (default) or Never
//   --loader-cpu-request=100m     of the loader, where spec.loader.resources does not say; the same of the next three
//   --loader-cpu-limit=QUANTITY   default: none
//   --loader-memory-request=64Mi  beside the rings, which are added; more where the spec tells that more is needed
//   --loader-memory-limit=QUANTITY  beside the rings, which are added; default: by the estimate, where there is one
//   --loader-run-as-user=65532    of the loader, where neither spec.loader nor the pod says who
//   --ring-volume=1Gi             size limit of the rings' volume, where their size is not known to be larger
//   --webhook-port=9443           TLS, paths /inject-pod and /inject-template
//   --metrics-port=8080           /healthz, /readyz, /livez; and /metrics, to all, unless there is:
//   --secure-metrics-port=0       /metrics over TLS, for those whose token may get it; 0: none
//   --webhook-configuration=NAME  the MutatingWebhookConfiguration whose caBundle is kept (default headrace-webhook)
//   --webhook-service=NAME        the Service in front of the webhook (default headrace-webhook)
//   --certificate-secret=NAME     where the certificate authority and the serving certificate live (default
//                                 headrace-webhook-certificate)
//   --lease=NAME                  leader election (default headrace-operator); empty: none, one replica only
//   --namespace=NAME              the operator's own; default: that of its service account
//   --identity=NAME               of this replica; default: $HOSTNAME
//   --workers=4                   reconciles at a time, 1 to 64
//   --drain-seconds=5             how long the webhook goes on serving after SIGTERM, 0 to 60
//   --api-server=URL              instead of the in-cluster address, without credentials (kubectl proxy, tests)
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "operator/admission/inject.h"

namespace headrace::op {

struct Config {
  LoaderOptions loader{.image = {}, .image_pull_policy = "IfNotPresent"};
  uint16_t webhook_port = 9443;
  uint16_t metrics_port = 8080;
  uint16_t secure_metrics_port = 0;
  std::string webhook_configuration = "headrace-webhook";
  std::string webhook_service = "headrace-webhook";
  std::string certificate_secret = "headrace-webhook-certificate";
  std::string lease = "headrace-operator";
  std::string name_space;
  std::string identity;
  int workers = 4;
  std::chrono::seconds drain{5};
  std::string api_server;
};

// Errors: InvalidArgument naming the flag, the value and what is allowed.
Result<Config> ParseConfig(const std::vector<std::string>& arguments);

}  // namespace headrace::op
