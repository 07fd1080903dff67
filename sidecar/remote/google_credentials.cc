#include <algorithm>
#include <nlohmann/json.hpp>

#include "sidecar/remote/credentials.h"
#include "sidecar/remote/small_request.h"

namespace headrace::side {
namespace {

// The token of the pod's service account; anonymous where no metadata server is.
Result<Credentials> FromMetadata(const Environment& environment, Transfers* transfers) {
  const std::string host = environment("GCE_METADATA_HOST").value_or("metadata.google.internal");
  Request request;
  request.url = "http://" + host + "/computeMetadata/v1/instance/service-accounts/default/token";
  request.headers = {"Metadata-Flavor: Google"};
  request.local = true;
  const Reply reply = SendSmall(transfers, request);
  // Not Google's machine, or no account: public objects can be read all the same.
  if (reply.fatal || reply.status == 404) return Credentials{};
  const auto object = nlohmann::json::parse(reply.text, nullptr, /*allow_exceptions=*/false);
  if (reply.status != 200 || !object.is_object() || !object.value("access_token", nlohmann::json()).is_string()) {
    return Unavailable("the metadata server at " + host + " gives no token: " +
                       (reply.status == 200 ? "its reply is not the JSON object that is due" : WhyFailed(reply)) +
                       "; check the workload identity of this pod's service account");
  }
  Credentials credentials;
  credentials.source = "the metadata server's token";
  credentials.bearer = object["access_token"].get<std::string>();
  const nlohmann::json seconds = object.value("expires_in", nlohmann::json());
  if (seconds.is_number_integer()) {
    credentials.expires =
        std::chrono::system_clock::now() + std::chrono::seconds(std::clamp<int64_t>(seconds.get<int64_t>(), 0, 86400));
  }
  return credentials;
}

}  // namespace

FetchCredentials GoogleCredentials(const Environment& environment, Transfers* transfers) {
  return [&environment, transfers]() -> Result<Credentials> {
    const auto access_key = environment("AWS_ACCESS_KEY_ID");
    const auto secret_key = environment("AWS_SECRET_ACCESS_KEY");
    if (access_key && secret_key) {
      return Credentials{"AWS_ACCESS_KEY_ID", AwsKeys{*access_key, *secret_key, ""}, "", {}};
    }
    return FromMetadata(environment, transfers);
  };
}

}  // namespace headrace::side
