#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "sidecar/remote/credentials.h"
#include "sidecar/remote/small_request.h"
#include "sidecar/remote/url.h"
#include "sidecar/remote/xml.h"

namespace headrace::side {
namespace {

using nlohmann::json;

// Written anew by the kubelet as it expires, so read at each use.
Result<std::string> ReadToken(const std::string& variable, const std::string& path) {
  std::ifstream file(path);
  if (!file) return NotFound(variable + ": " + path + " cannot be read");
  std::string token{std::istreambuf_iterator<char>(file), {}};
  token.erase(token.find_last_not_of(" \t\r\n") + 1);
  return token;
}

// "2025-01-31T12:00:00Z", with a fraction of a second or without; nothing if it is none.
std::optional<std::chrono::system_clock::time_point> ParseTime(const std::string& text) {
  std::tm utc{};
  if (strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &utc) == nullptr) return {};
  // The clock counts nanoseconds, and ends in 2262.
  return std::chrono::system_clock::from_time_t(std::clamp<std::time_t>(timegm(&utc), 0, 1LL << 32));
}

Result<Credentials> FromWebIdentity(const Environment& environment, const std::string& region, Transfers* transfers) {
  static constexpr char kSource[] = "AWS_WEB_IDENTITY_TOKEN_FILE";
  const std::optional<std::string> role = environment("AWS_ROLE_ARN");
  if (!role) return InvalidArgument("AWS_WEB_IDENTITY_TOKEN_FILE is set and AWS_ROLE_ARN is not: name the role");
  ASSIGN_OR_RETURN(const std::string token, ReadToken(kSource, *environment(kSource)));
  Request request;
  request.method = "POST";
  request.patient = true;
  request.url = environment("AWS_ENDPOINT_URL_STS").value_or("https://sts." + region + ".amazonaws.com") + "/";
  request.headers = {"Content-Type: application/x-www-form-urlencoded"};
  request.body = QueryOf({{"Action", "AssumeRoleWithWebIdentity"},
                          {"Version", "2011-06-15"},
                          {"RoleArn", *role},
                          {"RoleSessionName", environment("AWS_ROLE_SESSION_NAME").value_or("headrace")},
                          {"WebIdentityToken", token}});
  const Reply reply = SendSmall(transfers, request);
  if (reply.status != 200) {
    const std::string code = XmlText(reply.text, "Code");
    return Unavailable("AWS_ROLE_ARN " + *role + " cannot be assumed at " + request.url + ": " +
                       (code.empty() ? WhyFailed(reply) : code + ": " + XmlText(reply.text, "Message")) +
                       "; check the role's trust in the cluster's OIDC provider and in this pod's service account");
  }
  Credentials credentials{kSource,
                          AwsKeys{XmlText(reply.text, "AccessKeyId"), XmlText(reply.text, "SecretAccessKey"),
                                  XmlText(reply.text, "SessionToken")},
                          "", ParseTime(XmlText(reply.text, "Expiration"))};
  if (credentials.aws->access_key.empty() || credentials.aws->secret_key.empty()) {
    return Unavailable(request.url + " answered AssumeRoleWithWebIdentity without keys");
  }
  return credentials;
}

// The agent's address on the node, or TLS: the token must not go anywhere else in clear text.
bool MayCarryToken(const UrlParts& url) {
  if (url.scheme == "https") return true;
  const std::string host = url.host_name();
  return url.scheme == "http" && (host == "169.254.170.23" || host == "169.254.170.2" || host == "[fd00:ec2::23]" ||
                                  host == "localhost" || host.rfind("127.", 0) == 0 || host == "[::1]");
}

Result<Credentials> FromContainer(const Environment& environment, Transfers* transfers) {
  static constexpr char kSource[] = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
  static constexpr char kTokenFile[] = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE";
  Request request;
  request.url = *environment(kSource);
  request.local = true;
  if (!MayCarryToken(SplitUrl(request.url))) {
    return InvalidArgument(std::string(kSource) + ": " + request.url +
                           " is neither https nor an address of this node, and gets no token");
  }
  if (const auto file = environment(kTokenFile)) {
    ASSIGN_OR_RETURN(const std::string token, ReadToken(kTokenFile, *file));
    request.headers.push_back("Authorization: " + token);
  }
  const Reply reply = SendSmall(transfers, request);
  const json object = json::parse(reply.text, nullptr, /*allow_exceptions=*/false);
  const auto text = [&](const char* name) {
    const auto found = object.find(name);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  if (reply.status != 200 || !object.is_object() || text("AccessKeyId").empty()) {
    return Unavailable(std::string(kSource) + ": " + request.url + " gives no keys: " +
                       (reply.status == 200 ? "its reply is not the JSON object that is due" : WhyFailed(reply)) +
                       "; check the pod identity association of this pod's service account");
  }
  return Credentials{kSource, AwsKeys{text("AccessKeyId"), text("SecretAccessKey"), text("Token")}, "",
                     ParseTime(text("Expiration"))};
}

}  // namespace

FetchCredentials AwsCredentials(const Environment& environment, const std::string& region, Transfers* transfers) {
  return [&environment, &region, transfers]() -> Result<Credentials> {
    if (const auto access_key = environment("AWS_ACCESS_KEY_ID")) {
      const auto secret_key = environment("AWS_SECRET_ACCESS_KEY");
      if (!secret_key) return InvalidArgument("AWS_ACCESS_KEY_ID is set and AWS_SECRET_ACCESS_KEY is not");
      return Credentials{"AWS_ACCESS_KEY_ID",
                         AwsKeys{*access_key, *secret_key, environment("AWS_SESSION_TOKEN").value_or("")},
                         "",
                         {}};
    }
    if (environment("AWS_WEB_IDENTITY_TOKEN_FILE")) return FromWebIdentity(environment, region, transfers);
    if (environment("AWS_CONTAINER_CREDENTIALS_FULL_URI")) return FromContainer(environment, transfers);
    return Credentials{};
  };
}

}  // namespace headrace::side
