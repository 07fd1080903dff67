#include "operator/reconcile/peer_keys.h"

#include <nlohmann/json.hpp>
#include <optional>
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
  const Result<Certificate> newest = Certificate::Read(material.authorities.front());
  const Result<Certificate> certificate = Certificate::Read(material.pair.certificate_pem);
  if (!newest.ok() || !certificate.ok() || !newest->HasKey(material.authority_key) ||
      !certificate->HasKey(material.pair.private_key_pem)) {
    return facts;
  }
  const bool by_newest = certificate->IsSignedBy(*newest);
  facts.sound = by_newest;
  for (size_t i = 1; !facts.sound && i < material.authorities.size(); ++i) {
    const Result<Certificate> older = Certificate::Read(material.authorities[i]);
    facts.sound = older.ok() && certificate->IsSignedBy(*older);
  }
  const CertificateInfo authority = newest->Info(), issued = certificate->Info();
  facts.current = by_newest && issued.dns_names == std::vector<std::string>{names::kPeerTlsName};
  facts.authority = {authority.not_before, authority.not_after};
  facts.certificate = {issued.not_before, issued.not_after};
  return facts;
}

// Of a Secret that this process made just now: its signatures need no looking at.
PeerKeysFacts FactsOfNew(const json& secret, WallTime now) {
  PeerKeysFacts facts;
  facts.exists = facts.sound = facts.current = true;
  if (const json* owner = kube::ControllerOf(secret)) facts.owner_uid = kube::StringAt(*owner, {"uid"});
  const WallTime from = now - kClockSkew;
  facts.authority = {from, from + kAuthorityLifetime};
  facts.certificate = {from, from + kCertificateLifetime};
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
  const std::optional<Seen> seen = Recall(key);
  if (seen && now - seen->at < kLookLifetime) return seen->facts;
  const Result<json> object = client_.GetRemembered(kube::kSecrets, name_space, secret);
  if (!object.ok() && object.status().code() != Code::kNotFound) return object.status();
  PeerKeysFacts facts;
  if (object.ok()) {
    // Signatures are looked at once for each state of the Secret: it takes milliseconds.
    const bool same = seen && !seen->version.empty() && seen->version == kube::ResourceVersionOf(*object);
    facts = same ? seen->facts : FactsOf(*object);
  }
  Remember(key, facts, now, object.ok() ? *object : json());
  return facts;
}

void PeerKeys::PresumeNone(const std::string& name_space, const std::string& secret, WallTime now) {
  const std::lock_guard lock(mutex_);
  Seen& seen = seen_[KeyOf(name_space, secret)];
  if (!seen.facts.exists) seen = {{}, now, {}};
}

std::optional<PeerKeys::Seen> PeerKeys::Recall(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = seen_.find(key);
  return found == seen_.end() ? std::nullopt : std::optional(found->second);
}

void PeerKeys::Remember(const std::string& key, const PeerKeysFacts& facts, WallTime now, const json& secret) {
  const std::lock_guard lock(mutex_);
  seen_[key] = {facts, now, kube::ResourceVersionOf(secret)};
}

Status PeerKeys::Take(PeerKeysStep step, const json& metadata, WallTime now) {
  const std::string name_space = kube::StringAt(metadata, {"namespace"});
  const std::string name = kube::StringAt(metadata, {"name"});
  const std::string key = KeyOf(name_space, name);
  const std::optional<Seen> seen = Recall(key);
  Forget(name_space, name);
  json current;  // null: there is none
  if (!seen || seen->facts.exists) {
    Result<json> read = client_.Get(kube::kSecrets, name_space, name);
    if (!read.ok() && read.status().code() != Code::kNotFound) return read.status();
    if (read.ok()) current = *std::move(read);
    if (seen && kube::ResourceVersionOf(current) != seen->version) {
      return Conflict("Secret " + key + ": is not what it was when it was decided to write it");
    }
  }
  Material material = current.is_null() ? Material() : MaterialOf(current);
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
  if (!current.is_null()) secret["metadata"]["resourceVersion"] = kube::ResourceVersionOf(current);  // guards the write
  ASSIGN_OR_RETURN(const json written, current.is_null() ? client_.Create(kube::kSecrets, secret)
                                                         : client_.Replace(kube::kSecrets, secret));
  if (step == PeerKeysStep::kMake) Remember(key, FactsOfNew(written, now), now, written);
  log::Info("loaders' keys written", {{"secret", key}});
  return {};
}

void PeerKeys::Forget(const std::string& name_space, const std::string& secret) {
  const std::lock_guard lock(mutex_);
  seen_.erase(KeyOf(name_space, secret));
}

}  // namespace headrace::op
