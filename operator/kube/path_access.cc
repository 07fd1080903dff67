#include "operator/kube/path_access.h"

#include <openssl/sha.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "common/base/log.h"
#include "operator/kube/client.h"
#include "operator/kube/object.h"

namespace headrace::kube {
namespace {

using nlohmann::json;

// Scrapers are few; more than these are somebody who tries tokens.
constexpr size_t kMostAnswers = 64;

// The token of "Bearer TOKEN", whose first word is written in any case (RFC 7235); empty if there is none.
std::string BearerToken(const std::string& authorization) {
  constexpr std::string_view kScheme = "bearer ";
  const auto same = [](char a, char b) { return (a | 0x20) == (b | 0x20); };
  if (authorization.size() <= kScheme.size() ||
      !std::equal(kScheme.begin(), kScheme.end(), authorization.begin(), same)) {
    return {};
  }
  return authorization.substr(kScheme.size());
}

std::string Digest(const std::string& token, const std::string& path) {
  const std::string text = token + '\n' + path;  // a header has no newline
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(),
         reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

bool IsTrue(const json& review, const char* field) {
  const json& status = ObjectAt(review, {"status"});
  const auto found = status.find(field);
  return found != status.end() && found->is_boolean() && found->get<bool>();
}

}  // namespace

PathAccess::PathAccess(Client* client, Options options) : client_(client), options_(std::move(options)) {}

HttpResponse PathAccess::Serve(const HttpRequest& request, const HttpHandler& handler) {
  const std::string token = BearerToken(request.authorization);
  if (token.empty()) {
    return {.status = 401,
            .body = "no token: send the header 'Authorization: Bearer TOKEN' of a service account that may get " +
                    request.path + "\n"};
  }
  const std::string key = Digest(token, request.path);
  const auto now = options_.now();
  const auto respond = [&](const Answer& answer) {
    return answer.status == 200 ? handler(request) : HttpResponse{.status = answer.status, .body = answer.why + "\n"};
  };
  std::optional<Answer> known;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = answers_.find(key); found != answers_.end()) known = found->second;
  }
  if (known && now - known->since < (known->status == 200 ? options_.allowed_for : options_.denied_for))
    return respond(*known);
  Result<Answer> answer = Ask(token, request.path);
  if (!answer.ok()) {
    log::Warning("cannot ask who may get a path", {{"path", request.path}, {"error", answer.status().ToString()}});
    if (known && known->status == 200 && now - known->since < options_.allowed_unanswered) return respond(*known);
    return {.status = 503, .body = "cannot ask the API server who may get " + request.path + "\n"};
  }
  answer->since = now;
  {
    const std::lock_guard lock(mutex_);
    if (answers_.size() >= kMostAnswers && !answers_.contains(key)) {
      // Whoever was refused goes before those who were let in, the oldest first.
      const auto older = [](const auto& a, const auto& b) {
        return std::pair(a.second.status == 200, a.second.since) < std::pair(b.second.status == 200, b.second.since);
      };
      answers_.erase(std::min_element(answers_.begin(), answers_.end(), older));
    }
    answers_.insert_or_assign(key, *answer);
  }
  return respond(*answer);
}

Result<PathAccess::Answer> PathAccess::Ask(const std::string& token, const std::string& path) const {
  const json token_review = {{"apiVersion", kTokenReviews.api_version()},
                             {"kind", kTokenReviews.kind},
                             {"metadata", json::object()},
                             {"spec", {{"token", token}}}};
  ASSIGN_OR_RETURN(const json who, client_->Create(kTokenReviews, token_review));
  if (!IsTrue(who, "authenticated")) return Answer{401, "the API server does not know this token", {}};
  const json& user = ObjectAt(who, {"status", "user"});
  json spec = {{"user", StringAt(user, {"username"})},
               {"uid", StringAt(user, {"uid"})},
               {"groups", ListAt(user, {"groups"})},
               {"nonResourceAttributes", {{"path", path}, {"verb", "get"}}}};
  if (const json& extra = ObjectAt(user, {"extra"}); !extra.empty()) spec["extra"] = extra;
  const json access_review = {{"apiVersion", kSubjectAccessReviews.api_version()},
                              {"kind", kSubjectAccessReviews.kind},
                              {"metadata", json::object()},
                              {"spec", std::move(spec)}};
  ASSIGN_OR_RETURN(const json may, client_->Create(kSubjectAccessReviews, access_review));
  if (IsTrue(may, "allowed")) return Answer{200, {}, {}};
  return Answer{403,
                StringAt(user, {"username"}) + " may not get " + path +
                    ": bind it to a ClusterRole with the rule {nonResourceURLs: [" + path + "], verbs: [get]}",
                {}};
}

}  // namespace headrace::kube
