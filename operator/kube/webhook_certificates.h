// The webhook's certificate authority and serving certificate, made and rotated by the operator itself.
//
// They live in one Secret (tls.crt, tls.key, ca.crt, ca.key), through which all replicas agree: whoever finds it
// missing or old writes new ones, guarded by the resource version, and everybody reads what is there. The authority's
// certificates are kept in the webhook configuration's caBundle; while the authority rotates, the bundle holds the old
// and the new one, so that a server that has not yet noticed is still trusted.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <thread>
#include <vector>

#include "common/base/status.h"
#include "common/net/http_server.h"

namespace headrace::kube {

class Client;

class WebhookCertificates {
 public:
  struct Options {
    std::string name_space;
    std::string secret;
    std::string configuration;           // the MutatingWebhookConfiguration
    std::vector<std::string> dns_names;  // of the webhook's Service
    std::chrono::hours authority_lifetime{24 * 365 * 5};
    std::chrono::hours serving_lifetime{24 * 90};
    // How often Secret and caBundle are looked at when nothing fails, and when something does.
    std::chrono::milliseconds interval{60000};
    std::chrono::milliseconds retry{2000};
    std::function<std::chrono::system_clock::time_point()> now = std::chrono::system_clock::now;
  };
  // `client` (not owned) must outlive this.
  WebhookCertificates(Client* client, Options options);
  ~WebhookCertificates();
  WebhookCertificates(const WebhookCertificates&) = delete;
  WebhookCertificates& operator=(const WebhookCertificates&) = delete;

  // One look: makes or renews what is missing or past two thirds of its life, loads it, and sets the caBundle where it
  // differs. Not thread-safe; Start calls it from a thread of its own.
  Status Ensure();
  void Start();

  // What the server presents; null before the first Ensure that succeeded. Thread-safe.
  std::shared_ptr<const TlsKeyPair> pair() const;
  // Whether the API server was told to trust it. Thread-safe.
  bool ready() const;

 private:
  // Reads, and if need be writes, the Secret. The result has its data in plain text.
  Result<nlohmann::json> EnsureSecret();
  // Renews what is due in `data`. True if anything was.
  Result<bool> Renew(nlohmann::json& data) const;
  Status EnsureBundle(const std::string& bundle);
  bool Due(const std::string& certificate_pem) const;

  Client* const client_;
  const Options options_;
  mutable std::mutex mutex_;
  std::shared_ptr<const TlsKeyPair> pair_;  // guarded by mutex_
  bool ready_ = false;                      // guarded by mutex_
  std::condition_variable_any changed_;
  std::jthread thread_;
};

}  // namespace headrace::kube
