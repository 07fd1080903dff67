// Who we are to an object store: keys or a token, found as the stores' own tools find them, and renewed in time.
// Never in a log or an error message.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "common/base/status.h"
#include "sidecar/remote/sign_v4.h"
#include "sidecar/remote/transfers.h"

namespace headrace::side {

struct Credentials {
  std::string source;  // for messages: "AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE", ...; "": anonymous
  std::optional<AwsKeys> aws;
  std::string bearer;  // a Google access token
  std::optional<std::chrono::system_clock::time_point> expires;
};

// A variable of the environment; nothing if it is unset or empty. Tests bring their own.
using Environment = std::function<std::optional<std::string>(const char* name)>;
Environment ProcessEnvironment();

// Asks for credentials, over the network where need be; blocks. Errors: InvalidArgument, Unavailable, NotFound, naming
// the source.
using FetchCredentials = std::function<Result<Credentials>()>;

// The first of these that the environment names: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (with AWS_SESSION_TOKEN);
// AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN, exchanged at STS (AWS_ENDPOINT_URL_STS, or that of `region`);
// AWS_CONTAINER_CREDENTIALS_FULL_URI with AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE (EKS Pod Identity); else none. Both
// must outlive what is returned.
FetchCredentials AwsCredentials(const Environment& environment, const std::string& region, Transfers* transfers);

// HMAC keys from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, else the token of the pod's service account from the
// metadata server (GKE Workload Identity; at GCE_METADATA_HOST if that is set), else none.
FetchCredentials GoogleCredentials(const Environment& environment, Transfers* transfers);

// Keeps the current ones. Any thread.
class CredentialCache {
 public:
  explicit CredentialCache(FetchCredentials fetch) : fetch_(std::move(fetch)) {}

  // What there is; null before the first Renew. Does not block on the network.
  std::shared_ptr<const Credentials> current() const;
  // Makes current() good for the next minutes, by asking for new ones where there are none or they expire soon. A
  // failure while the old ones are still good is no error. Blocks.
  Status Renew();
  // The same after the store has refused `used` as expired.
  Status Replace(const std::shared_ptr<const Credentials>& used);

 private:
  Status Fetch();  // under renewing_

  const FetchCredentials fetch_;
  std::mutex renewing_;  // held while asking, so that one asks for all
  mutable std::mutex mutex_;
  std::shared_ptr<const Credentials> current_;  // shared: read while it is replaced
};

}  // namespace headrace::side
