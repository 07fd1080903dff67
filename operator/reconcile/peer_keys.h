// The keys by which the loaders of one input know one another: a Secret owned by the input, with ca.crt, tls.crt and
// tls.key for the loaders and ca.key, which is not mounted, for the operator.
//
// Rotation never parts two loaders: a new authority is first added to ca.crt, and only once every pod has that file is
// a certificate signed by it. Secrets are read by name and never listed, watched or kept: what stays in memory is
// dates.
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "common/base/status.h"

namespace headrace::kube {
class Client;
}

namespace headrace::op {

using WallTime = std::chrono::system_clock::time_point;

struct Lifetime {
  WallTime from;
  WallTime until;
};

// What may be known of the Secret by everybody.
struct PeerKeysFacts {
  bool exists = false;
  std::string owner_uid;  // of its controller
  bool sound = false;     // all parts are there and fit together
  bool current = false;   // the certificate is of the newest authority, and for the loaders' name
  Lifetime authority;     // the newest; if sound
  Lifetime certificate;   // if sound
};

enum class PeerKeysStep {
  kMake,              // everything anew
  kAddAuthority,      // trusted from now on, not used yet
  kRenewCertificate,  // signed by the newest authority
};

class PeerKeys {
 public:
  // `client` (not owned) must outlive this.
  explicit PeerKeys(kube::Client* client) : client_(*client) {}

  // As of a minute ago or so. Cheap, but for a Secret that this process has not seen as it is now.
  Result<PeerKeysFacts> Look(const std::string& name_space, const std::string& secret, WallTime now);
  // The next Look need not ask: nothing of the input was ever made, so neither, most likely, was this Secret. Where it
  // was, Take comes upon it.
  void PresumeNone(const std::string& name_space, const std::string& secret, WallTime now);
  // Writes the Secret `metadata` names, as whose metadata it is taken. Conflict if it is not what Look saw last, or
  // somebody else wrote meanwhile: look again.
  Status Take(PeerKeysStep step, const nlohmann::json& metadata, WallTime now);
  void Forget(const std::string& name_space, const std::string& secret);

 private:
  struct Seen {
    PeerKeysFacts facts;
    WallTime at;
    std::string version;  // resourceVersion of the Secret
  };

  std::optional<Seen> Recall(const std::string& key);
  void Remember(const std::string& key, const PeerKeysFacts& facts, WallTime now, const nlohmann::json& secret);

  kube::Client& client_;
  std::mutex mutex_;
  std::map<std::string, Seen> seen_;  // guarded by mutex_; by "namespace/secret"
};

}  // namespace headrace::op
