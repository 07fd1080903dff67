// Who may read what this process serves beside objects, such as /metrics: whoever the API server says may. The bearer's
// token is asked for its user (TokenReview), and the user for the right to the path (SubjectAccessReview with
// nonResourceAttributes), as controller-runtime and kube-rbac-proxy do, so that Prometheus' usual rights are enough.
//
// The token is the credential of whoever called: it goes to the API server alone, and is remembered as a digest.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "common/base/status.h"
#include "common/net/http_server.h"

namespace headrace::kube {

class Client;

class PathAccess {
 public:
  struct Options {
    std::chrono::seconds allowed_for{60};  // how long an answer is believed
    std::chrono::seconds denied_for{10};
    // How long who was let in stays so while the API server does not answer: metrics are wanted most then.
    std::chrono::seconds allowed_unanswered{3600};
    std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
  };
  // `client` (not owned) must outlive this; its calls should be short, as a scrape waits for them.
  PathAccess(Client* client, Options options);

  // `handler` for those who may `get` the path of the request. Others hear why not, and what to do: 401 without a token
  // that the API server knows, 403 without the right, 503 if it does not answer. Thread-safe.
  HttpResponse Serve(const HttpRequest& request, const HttpHandler& handler);

 private:
  struct Answer {
    int status;  // 200, 401 or 403
    std::string why;
    std::chrono::steady_clock::time_point since;
  };

  Result<Answer> Ask(const std::string& token, const std::string& path) const;

  Client* const client_;
  const Options options_;
  std::mutex mutex_;
  std::map<std::string, Answer> answers_;  // by digest of token and path; guarded by mutex_
};

}  // namespace headrace::kube
