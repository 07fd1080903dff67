// Every name that more than one part of Headrace must spell alike: labels, annotations, environment, paths, ports.
#pragma once

namespace headrace::names {

inline constexpr char kGroup[] = "headrace.dev";
inline constexpr char kVersion[] = "v1alpha1";
inline constexpr char kKind[] = "DistributedInput";
inline constexpr char kPlural[] = "distributedinputs";

// On a pod template. The label opts in; the annotations refine.
inline constexpr char kInputLabel[] = "headrace.dev/input";
// Number of workers, for owners whose size the operator cannot read.
inline constexpr char kWorkersAnnotation[] = "headrace.dev/workers";
// For pods whose workload does not tell their place: the index of each, from 0, and a name that all pods of the run
// share.
inline constexpr char kWorkerIndexAnnotation[] = "headrace.dev/worker-index";
inline constexpr char kRunAnnotation[] = "headrace.dev/run";
// Comma-separated containers that read batches; default: all.
inline constexpr char kContainersAnnotation[] = "headrace.dev/containers";
// "host:port" of worker 0's loader, for owners whose pods have no names that the operator can tell.
inline constexpr char kCoordinatorAnnotation[] = "headrace.dev/coordinator";
// Written by the webhook: the plan's hash, so that a reinvocation changes nothing.
inline constexpr char kInjectedAnnotation[] = "headrace.dev/injected-plan";
// Written by the webhook: who the run is, for people, where the pod's controller is not what they know
// ("JobSet/train/w").
inline constexpr char kRunOwnerAnnotation[] = "headrace.dev/run-owner";
// Written by the webhook instead of an injection: why the pod needs none.
inline constexpr char kNotInjectedAnnotation[] = "headrace.dev/not-injected";
// On a Job, "true": its template gets the loader when the Job is created, so that queues count what the loader takes.
inline constexpr char kInjectTemplateLabel[] = "headrace.dev/inject-template";

// Injected into pods.
inline constexpr char kLoaderContainer[] = "headrace-loader";
inline constexpr char kFunctionContainer[] = "headrace-function";  // spec.source.function.container
inline constexpr char kRunVolume[] = "headrace-run";               // emptyDir, medium Memory: the rings and the socket
inline constexpr char kPlanVolume[] = "headrace-plan";             // the plan's ConfigMap
inline constexpr char kDataVolume[] = "headrace-data";             // spec.source.files.volume
inline constexpr char kCacheVolume[] = "headrace-cache";           // spec.source.files.objectStore.cache.volume
inline constexpr char kRunDir[] = "/run/headrace";
inline constexpr char kCacheDir[] = "/var/cache/headrace";
inline constexpr char kPlanDir[] = "/etc/headrace/plan";
inline constexpr char kPlanFile[] = "plan.json";  // the key in the ConfigMap
inline constexpr char kDefaultDataDir[] = "/data";
inline constexpr int kLoaderPort = 9464;  // /metrics, /healthz, /startupz of the loader
inline constexpr char kLoaderPortName[] = "headrace";
inline constexpr int kPeersPort = 9465;  // where worker 0's loader meets the others
inline constexpr char kPeersPortName[] = "headrace-peers";

// How loaders know one another: keys that the operator makes, mounted into loaders alone.
inline constexpr char kPeersVolume[] = "headrace-peers";
inline constexpr char kPeersDir[] = "/etc/headrace/peers";
inline constexpr char kPeerAuthorityFile[] = "ca.crt";  // may hold several, while they are rotated
inline constexpr char kPeerCertificateFile[] = "tls.crt";
inline constexpr char kPeerKeyFile[] = "tls.key";
// The name in every loader's certificate: who is let in does not depend on DNS.
inline constexpr char kPeerTlsName[] = "loader.headrace.dev";

// Environment of the loader and, the first only, of the trainers.
inline constexpr char kEnvDir[] = "HEADRACE_DIR";                   // the run directory
inline constexpr char kEnvPlan[] = "HEADRACE_PLAN";                 // path of plan.json
inline constexpr char kEnvWorkerIndex[] = "HEADRACE_WORKER_INDEX";  // input pipeline id
inline constexpr char kEnvNumWorkers[] = "HEADRACE_NUM_WORKERS";    // number of input pipelines
inline constexpr char kEnvReplicasPerWorker[] = "HEADRACE_REPLICAS_PER_WORKER";
inline constexpr char kEnvRunId[] = "HEADRACE_RUN_ID";        // seeds unseeded shuffles, alike on every worker
inline constexpr char kEnvDataDir[] = "HEADRACE_DATA_DIR";    // relative paths resolve against it
inline constexpr char kEnvCacheDir[] = "HEADRACE_CACHE_DIR";  // where objects are kept that were read
inline constexpr char kEnvListen[] = "HEADRACE_LISTEN";       // "address:port" for metrics and probes
// Seconds that the loader waits for the process of spec.source.function to come.
inline constexpr char kEnvFunctionTimeout[] = "HEADRACE_FUNCTION_TIMEOUT";
inline constexpr char kEnvServeErrors[] = "HEADRACE_SERVE_ERRORS";  // "1": see sidecar/loader/config.h
inline constexpr char kEnvCoordinator[] = "HEADRACE_COORDINATOR";   // where worker 0 listens: see sidecar/collective
inline constexpr char kEnvPeerTlsDir[] = "HEADRACE_PEER_TLS_DIR";   // ca.crt, tls.crt and tls.key of the loaders

// In the run directory.
inline constexpr char kSocketFile[] = "loader.sock";
// The bad records that spec.onError left out, a JSON object a line.
inline constexpr char kQuarantineFile[] = "quarantine.jsonl";
inline constexpr char kFunctionSocketFile[] = "function.sock";
inline constexpr char kMetricsFile[] = "metrics.addr";  // one line, "host:port": where the loader serves /metrics

}  // namespace headrace::names
