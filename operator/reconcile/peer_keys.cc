#include "operator/reconcile/peer_keys.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "common/base/log.h"
#include "common/net/base64.h"
#include "common/net/certificates.h"
#include "common/spec/names.h"
#include "operator/kube/client.h"
#include "operator/kube/object.h"

namespace headrace::op {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr char kAuthorityKey[] = "ca.key";
constexpr char kAuthorityName[] = "headrace-peers";
constexpr auto kAuthorityLifetime = 24h * 365 * 5;
constexpr auto kCertificateLifetime = 24h * 90;
// Certificates are valid from a little in the past, for nodes whose clock is behind.
constexpr auto kClockSkew = 1h;
constexpr auto kLookLifetime = 1min;

// The Secret's data in plain text. Lives as long as one call.
struct Material {
  std::vector<std::string> authorities;  // newest first
  std::string authority_key;
  TlsKeyPair pair;
};

// The certificates of a bundle, each by itself.
std::vector<std::string> SplitBundle(const std::string& bundle) {
  constexpr std::string_view kEnd = "-----END CERTIFICATE-----\n";
  std::vector<std::string> certificates;
  size_t begin = 0;
  for (size_t end = bundle.find(kEnd); end != std::string::npos; end = bundle.find(kEnd, begin)) {
    end += kEnd.size();
    certificates.push_back(bundle.substr(begin, end - begin));
    begin = end;
  }
  return certificates;
}

Material MaterialOf(const json& secret) {
  const auto text = [&](const char* key) {
    return DecodeBase64(kube::StringAt(secret, {"data", key})).value_or(std::string());
  };
  return {SplitBundle(text(names::kPeerAuthorityFile)),
          text(kAuthorityKey),
          {text(names::kPeerCertificateFile), text(names::kPeerKeyFile)}};
}

PeerKeysFacts FactsOf(const json& secret) {
  const Material material = MaterialOf(secret);
  PeerKeysFacts facts;
  facts.exists = true;
  if (const json* owner = kube::ControllerOf(secret)) facts.owner_uid = kube::StringAt(*owner, {"uid"});
  if (material.authorities.empty()) return facts;
  const std::string& newest = material.authorities.front();
  const Result<CertificateInfo> authority = ReadCertificate(newest);
  const Result<CertificateInfo> certificate = ReadCertificate(material.pair.certificate_pem);
  if (!authority.ok() || !certificate.ok() || !Verifies({newest, material.authority_key}, newest)) return facts;
  for (const std::string& trusted : material.authorities) facts.sound |= Verifies(material.pair, trusted);
  facts.current =
      Verifies(material.pair, newest) && certificate->dns_names == std::vector<std::string>{names::kPeerTlsName};
  facts.authority = {authority->not_before, authority->not_after};
  facts.certificate = {certificate->not_before, certificate->not_after};
  return facts;
}

Status AddAuthority(Material& material, WallTime now) {
  const auto from = now - kClockSkew;
  ASSIGN_OR_RETURN(const Authority made, MakeAuthority(kAuthorityName, from, from + kAuthorityLifetime));
  // What has run out is trusted by nobody.
  std::erase_if(material.authorities, [&](const std::string& old) {
    const Result<CertificateInfo> info = ReadCertificate(old);
    return !info.ok() || info->not_after <= now;
  });
  material.authorities.insert(material.authorities.begin(), made.certificate_pem);
  material.authority_key = made.private_key_pem;
  return {};
}

Status RenewCertificate(Material& material, WallTime now) {
  const auto from = now - kClockSkew;
  ASSIGN_OR_RETURN(material.pair, IssuePeerCertificate({material.authorities.front(), material.authority_key},
                                                       {names::kPeerTlsName}, from, from + kCertificateLifetime));
  return {};
}

Status Advance(Material& material, PeerKeysStep step, WallTime now) {
  switch (step) {
    case PeerKeysStep::kMake:
      material = {};
      RETURN_IF_ERROR(AddAuthority(material, now));
      return RenewCertificate(material, now);
    case PeerKeysStep::kAddAuthority: return AddAuthority(material, now);
    case PeerKeysStep::kRenewCertificate: return RenewCertificate(material, now);
  }
  return {};
}

std::string KeyOf(const std::string& name_space, const std::string& secret) { return name_space + "/" + secret; }

}  // namespace

Result<PeerKeysFacts> PeerKeys::Look(const std::string& name_space, const std::string& secret, WallTime now) {
  const std::string key = KeyOf(name_space, secret);
  {
    const std::lock_guard lock(mutex_);
    const auto seen = seen_.find(key);
    if (seen != seen_.end() && now - seen->second.at < kLookLifetime) return seen->second.facts;
  }
  const Result<json> object = client_.Get(kube::kSecrets, name_space, secret);
  if (!object.ok() && object.status().code() != Code::kNotFound) return object.status();
  const PeerKeysFacts facts = object.ok() ? FactsOf(*object) : PeerKeysFacts();
  const std::lock_guard lock(mutex_);
  seen_[key] = {facts, now};
  return facts;
}

Status PeerKeys::Take(PeerKeysStep step, const json& metadata, WallTime now) {
  const std::string name_space = kube::StringAt(metadata, {"namespace"});
  const std::string name = kube::StringAt(metadata, {"name"});
  Forget(name_space, name);
  const Result<json> current = client_.Get(kube::kSecrets, name_space, name);
  if (!current.ok() && current.status().code() != Code::kNotFound) return current.status();
  Material material = current.ok() ? MaterialOf(*current) : Material();
  if (material.authorities.empty()) step = PeerKeysStep::kMake;
  RETURN_IF_ERROR(Advance(material, step, now));
  std::string bundle;
  for (const std::string& authority : material.authorities) bundle += authority;
  json secret = {{"apiVersion", "v1"},
                 {"kind", "Secret"},
                 {"type", "Opaque"},
                 {"metadata", metadata},
                 {"data",
                  {{names::kPeerAuthorityFile, EncodeBase64(bundle)},
                   {kAuthorityKey, EncodeBase64(material.authority_key)},
                   {names::kPeerCertificateFile, EncodeBase64(material.pair.certificate_pem)},
                   {names::kPeerKeyFile, EncodeBase64(material.pair.private_key_pem)}}}};
  if (current.ok()) {
    secret["metadata"]["resourceVersion"] = kube::ResourceVersionOf(*current);  // guards the write
    RETURN_IF_ERROR(client_.Replace(kube::kSecrets, secret));
  } else {
    RETURN_IF_ERROR(client_.Create(kube::kSecrets, secret));
  }
  log::Info("loaders' keys written", {{"secret", KeyOf(name_space, name)}});
  return {};
}

void PeerKeys::Forget(const std::string& name_space, const std::string& secret) {
  const std::lock_guard lock(mutex_);
  seen_.erase(KeyOf(name_space, secret));
}

}  // namespace headrace::op
