// A typed-by-path client of the Kubernetes API: objects are JSON, resources are named by group, version and plural.
//
//   Client client(transport.get(), {});
//   auto map = client.Get(kConfigMaps, "ml", "clicks-plan-0123");
//
// Blocking; thread-safe. Failures carry the API's own message and map to codes:
//   404 NotFound   409 Conflict   410 Exhausted ("expired")   other 4xx InvalidArgument
//   401, 403, 408, 429, 5xx and transport failures Unavailable.
// A 429 or 503 with Retry-After is waited for and tried again a few times (the options bound it) before it is reported.
#pragma once

#include <chrono>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"

namespace headrace::kube {

class HttpTransport;
struct HttpCall;
struct HttpReply;

// Which objects a path speaks of.
struct Resource {
  std::string group;  // empty: the core group
  std::string version;
  std::string plural;
  std::string kind;
  bool namespaced = true;

  std::string api_version() const { return group.empty() ? version : group + "/" + version; }
};

inline const Resource kPods{"", "v1", "pods", "Pod"};
inline const Resource kConfigMaps{"", "v1", "configmaps", "ConfigMap"};
inline const Resource kServices{"", "v1", "services", "Service"};
inline const Resource kSecrets{"", "v1", "secrets", "Secret"};
inline const Resource kJobs{"batch", "v1", "jobs", "Job"};
inline const Resource kStatefulSets{"apps", "v1", "statefulsets", "StatefulSet"};
inline const Resource kLeases{"coordination.k8s.io", "v1", "leases", "Lease"};
inline const Resource kEvents{"events.k8s.io", "v1", "events", "Event"};
inline const Resource kMutatingWebhooks{"admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations",
                                        "MutatingWebhookConfiguration", false};
inline const Resource kTokenReviews{"authentication.k8s.io", "v1", "tokenreviews", "TokenReview", false};
inline const Resource kSubjectAccessReviews{"authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview",
                                            false};
inline const Resource kInputs{"headrace.dev", "v1alpha1", "distributedinputs", "DistributedInput"};

// "/apis/headrace.dev/v1alpha1/namespaces/ml/distributedinputs/clicks". An empty namespace means all, an empty name the
// collection. Names are percent-encoded.
std::string PathOf(const Resource& resource, std::string_view name_space, std::string_view name);
// "a=b&c=d" with both sides percent-encoded.
std::string QueryOf(const std::vector<std::pair<std::string, std::string>>& parameters);

// The status that a reply of the API means; ok for 2xx. `what` is "GET configmaps ml/clicks".
Status StatusOfReply(const HttpReply& reply, std::string_view what);

struct ClientOptions {
  std::string field_manager = "headrace-operator";
  int page_size = 500;
  int retry_attempts = 3;  // after 429 and 503 with Retry-After
  std::chrono::milliseconds retry_after_cap{5000};
  std::function<void(std::chrono::milliseconds)> sleep = {};  // null: sleeps
  // Called for each reply: method, HTTP status ("<error>" where none came), seconds. May be null.
  std::function<void(std::string_view method, std::string_view code, double seconds)> on_request = {};
  // Called for each request that is sent again because the server asked to wait. May be null.
  std::function<void(std::string_view method, std::string_view code)> on_retry = {};
};

class Client {
 public:
  // `transport` (not owned) must outlive the client.
  Client(HttpTransport* transport, ClientOptions options);
  virtual ~Client() = default;

  virtual Result<nlohmann::json> Get(const Resource& resource, const std::string& name_space, const std::string& name);
  // As the API server remembers it, who asks etcd for nothing: cheap, and what was written just now may be missing.
  virtual Result<nlohmann::json> GetRemembered(const Resource& resource, const std::string& name_space,
                                               const std::string& name);

  struct Listing {
    std::vector<nlohmann::json> items;  // each with its apiVersion and kind
    std::string resource_version;       // to watch from
  };
  // All pages as one; an expired continue token restarts the listing once. Empty `name_space`: all namespaces.
  virtual Result<Listing> List(const Resource& resource, const std::string& name_space,
                               const std::string& label_selector);

  // The same, page by page through `on_item`, which sees each item once; returns the resource version to watch from.
  // Exhausted: a continue token expired, so start again.
  virtual Result<std::string> ListEach(const Resource& resource, const std::string& name_space,
                                       const std::string& label_selector,
                                       const std::function<void(nlohmann::json item)>& on_item);

  // REQUIRES: the object has a name (never generateName), so that a request sent twice does no harm, or is a review,
  // which is answered and not stored. Conflict if it exists.
  virtual Result<nlohmann::json> Create(const Resource& resource, const nlohmann::json& object);
  // Server-side apply, forced. REQUIRES: apiVersion, kind, metadata.name and (if namespaced) metadata.namespace.
  virtual Result<nlohmann::json> Apply(const Resource& resource, const nlohmann::json& object);
  // The same to the status subresource.
  virtual Result<nlohmann::json> ApplyStatus(const Resource& resource, const nlohmann::json& object);
  // JSON merge patch (RFC 7386).
  virtual Result<nlohmann::json> MergePatch(const Resource& resource, const std::string& name_space,
                                            const std::string& name, const nlohmann::json& patch);
  // PUT: Conflict if metadata.resourceVersion is no longer the current one.
  virtual Result<nlohmann::json> Replace(const Resource& resource, const nlohmann::json& object);
  // Ok if it is already gone. Dependents go in the background. A non-empty `uid` guards against deleting a successor.
  virtual Status Delete(const Resource& resource, const std::string& name_space, const std::string& name,
                        const std::string& uid = {});

 private:
  Result<nlohmann::json> Call(const HttpCall& call);
  Result<nlohmann::json> ApplyTo(const Resource& resource, const nlohmann::json& object,
                                 const std::string& subresource);
  Result<HttpReply> SendCounted(const HttpCall& call);

  HttpTransport* const transport_;
  const ClientOptions options_;
};

}  // namespace headrace::kube
