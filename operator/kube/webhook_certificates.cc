#include "operator/kube/webhook_certificates.h"

#include <nlohmann/json.hpp>
#include <set>

#include "common/base/log.h"
#include "common/net/base64.h"
#include "common/net/certificates.h"
#include "operator/kube/client.h"
#include "operator/kube/object.h"

namespace headrace::kube {
namespace {

using nlohmann::json;

// The keys of the Secret. kOldAuthority is the authority before the last rotation: trusted, no longer used.
constexpr char kCertificate[] = "tls.crt";
constexpr char kKey[] = "tls.key";
constexpr char kAuthority[] = "ca.crt";
constexpr char kAuthorityKey[] = "ca.key";
constexpr char kOldAuthority[] = "ca-old.crt";
// Certificates are valid from a little in the past, for API servers whose clock is behind.
constexpr auto kClockSkew = std::chrono::hours(1);

// The Secret's data in plain text; what cannot be decoded reads as absent.
json Decoded(const json& secret) {
  json data = json::object();
  for (const char* key : {kCertificate, kKey, kAuthority, kAuthorityKey, kOldAuthority})
    if (auto text = DecodeBase64(StringAt(secret, {"data", key}))) data[key] = *text;
  return data;
}

std::string Field(const json& data, const char* key) { return StringAt(data, {key}); }

}  // namespace

WebhookCertificates::WebhookCertificates(Client* client, Options options)
    : client_(client), options_(std::move(options)) {}

WebhookCertificates::~WebhookCertificates() = default;

std::shared_ptr<const TlsKeyPair> WebhookCertificates::pair() const {
  const std::lock_guard lock(mutex_);
  return pair_;
}

bool WebhookCertificates::ready() const {
  const std::lock_guard lock(mutex_);
  return ready_;
}

void WebhookCertificates::Start() {
  thread_ = std::jthread([this](std::stop_token stop) {
    while (!stop.stop_requested()) {
      const Status status = Ensure();
      if (!status.ok()) log::Warning("webhook certificates", {{"error", status.ToString()}});
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, stop, status.ok() ? options_.interval : options_.retry, [] { return false; });
    }
  });
}

bool WebhookCertificates::Due(const std::string& certificate_pem) const {
  const Result<CertificateInfo> info = ReadCertificate(certificate_pem);
  if (!info.ok()) return true;
  return options_.now() >= info->not_before + (info->not_after - info->not_before) * 2 / 3;
}

Result<bool> WebhookCertificates::Renew(json& data) const {
  bool renewed = false;
  const auto start = options_.now() - kClockSkew;
  const std::string authority = Field(data, kAuthority);
  if (Due(authority) || Field(data, kAuthorityKey).empty()) {
    ASSIGN_OR_RETURN(const Authority made,
                     MakeAuthority("headrace-webhook", start, start + options_.authority_lifetime));
    data[kOldAuthority] = ReadCertificate(authority).ok() ? authority : "";
    data[kAuthority] = made.certificate_pem;
    data[kAuthorityKey] = made.private_key_pem;
    renewed = true;
  }
  const TlsKeyPair current{Field(data, kCertificate), Field(data, kKey)};
  const Result<CertificateInfo> info = ReadCertificate(current.certificate_pem);
  if (renewed || Due(current.certificate_pem) || !Verifies(current, Field(data, kAuthority)) ||
      info->dns_names != options_.dns_names) {
    ASSIGN_OR_RETURN(const TlsKeyPair made,
                     IssueServingCertificate({Field(data, kAuthority), Field(data, kAuthorityKey)}, options_.dns_names,
                                             start, start + options_.serving_lifetime));
    data[kCertificate] = made.certificate_pem;
    data[kKey] = made.private_key_pem;
    renewed = true;
  }
  return renewed;
}

Result<json> WebhookCertificates::EnsureSecret() {
  const Result<json> current = client_->Get(kSecrets, options_.name_space, options_.secret);
  if (!current.ok() && current.status().code() != Code::kNotFound) return current.status();
  json data = current.ok() ? Decoded(*current) : json::object();
  ASSIGN_OR_RETURN(const bool renewed, Renew(data));
  if (!renewed) return data;
  json secret = {{"apiVersion", "v1"},
                 {"kind", "Secret"},
                 {"type", "Opaque"},
                 {"metadata", {{"namespace", options_.name_space}, {"name", options_.secret}}},
                 {"data", json::object()}};
  if (current.ok()) secret["metadata"] = (*current)["metadata"];  // labels, and the version that guards the write
  for (const auto& [key, text] : data.items()) secret["data"][key] = EncodeBase64(text.get<std::string>());
  RETURN_IF_ERROR(current.ok() ? client_->Replace(kSecrets, secret) : client_->Create(kSecrets, secret));
  log::Info("webhook certificate renewed", {{"secret", options_.name_space + "/" + options_.secret}});
  return data;
}

Status WebhookCertificates::EnsureBundle(const std::string& bundle) {
  ASSIGN_OR_RETURN(const json configuration, client_->Get(kMutatingWebhooks, "", options_.configuration));
  const std::string encoded = EncodeBase64(bundle);
  json webhooks = configuration.value("webhooks", json::array());
  bool differs = false;
  for (json& webhook : webhooks) {
    json& config = webhook["clientConfig"];
    differs |= StringAt(config, {"caBundle"}) != encoded;
    config["caBundle"] = encoded;
  }
  if (!differs) return {};
  // A merge patch replaces lists whole, so the version guards against losing somebody else's change.
  const json patch = {{"metadata", {{"resourceVersion", ResourceVersionOf(configuration)}}}, {"webhooks", webhooks}};
  RETURN_IF_ERROR(client_->MergePatch(kMutatingWebhooks, "", options_.configuration, patch));
  log::Info("caBundle set", {{"configuration", options_.configuration}});
  return {};
}

Status WebhookCertificates::Ensure() {
  Result<json> data = EnsureSecret();
  // Another replica wrote first: take what it wrote.
  if (data.status().code() == Code::kConflict) data = EnsureSecret();
  RETURN_IF_ERROR(data, "secret " + options_.name_space + "/" + options_.secret);
  // Trust comes first: at no moment is a certificate served that the bundle does not vouch for.
  const bool first = pair() == nullptr;
  const auto fresh = std::make_shared<const TlsKeyPair>(TlsKeyPair{Field(*data, kCertificate), Field(*data, kKey)});
  const Status bundled = EnsureBundle(Field(*data, kAuthority) + Field(*data, kOldAuthority));
  const std::lock_guard lock(mutex_);
  if (bundled.ok() || first)
    if (!pair_ || pair_->certificate_pem != fresh->certificate_pem) pair_ = fresh;
  if (bundled.ok()) ready_ = true;
  return bundled;
}

}  // namespace headrace::kube
