#include "operator/kube/path_access.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <vector>

#include "operator/kube/client.h"
#include "operator/kube/transport.h"

namespace headrace::kube {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

// An API server that knows users by their tokens, and who may get what; it stores nothing.
class Reviews : public HttpTransport {
 public:
  std::map<std::string, std::string> users;              // by token
  std::set<std::pair<std::string, std::string>> rights;  // user and path
  bool answers = true;
  std::vector<json> asked;

  Result<HttpReply> Send(const HttpCall& call) override {
    if (!answers) return Unavailable("no route to host");
    json review = json::parse(call.body);
    asked.push_back(review);
    const json& spec = review["spec"];
    if (call.target.starts_with("/apis/authentication.k8s.io/v1/tokenreviews?")) {
      const auto user = users.find(spec["token"]);
      review["status"] = {{"authenticated", user != users.end()}};
      if (user != users.end()) {
        review["status"]["user"] = {
            {"username", user->second}, {"uid", "u-1"}, {"groups", {"g"}}, {"extra", {{"k", {"v"}}}}};
      }
    } else if (call.target.starts_with("/apis/authorization.k8s.io/v1/subjectaccessreviews?")) {
      const json& attributes = spec["nonResourceAttributes"];
      review["status"] = {
          {"allowed", attributes["verb"] == "get" && rights.contains({spec["user"], attributes["path"]})}};
    } else {
      return HttpReply{.status = 404, .body = "{}"};
    }
    return HttpReply{.status = 201, .body = review.dump()};
  }
  Result<HttpReply> Stream(const HttpCall&, std::chrono::milliseconds, std::stop_token,
                           const std::function<Status(std::string_view)>&) override {
    return Internal("not asked for");
  }
};

class PathAccessTest : public ::testing::Test {
 protected:
  PathAccessTest() {
    api_.users = {{"prometheus-token", "prometheus"}, {"guest-token", "guest"}};
    api_.rights = {{"prometheus", "/metrics"}};
  }

  HttpResponse Get(const std::string& authorization, const std::string& path = "/metrics") {
    return access_.Serve({.method = "GET", .path = path, .query = {}, .body = {}, .authorization = authorization},
                         [](const HttpRequest&) { return HttpResponse{.body = "numbers"}; });
  }

  Reviews api_;
  Client client_{&api_, {}};
  std::chrono::steady_clock::time_point now_{1h};
  PathAccess access_{&client_, {.now = [this] { return now_; }}};
};

TEST_F(PathAccessTest, WhoMayGetThePathDoes) {
  EXPECT_EQ(Get("Bearer prometheus-token").body, "numbers");
  ASSERT_EQ(api_.asked.size(), 2);
  EXPECT_EQ(api_.asked[1]["spec"], json({{"user", "prometheus"},
                                         {"uid", "u-1"},
                                         {"groups", {"g"}},
                                         {"extra", {{"k", {"v"}}}},
                                         {"nonResourceAttributes", {{"path", "/metrics"}, {"verb", "get"}}}}));
  EXPECT_EQ(Get("bearer prometheus-token").body, "numbers");
}

TEST_F(PathAccessTest, OthersHearWhy) {
  for (const char* none : {"", "Bearer", "Bearer ", "Basic cHJvbWV0aGV1cw==", "prometheus-token"}) {
    EXPECT_EQ(Get(none).status, 401) << none;
    EXPECT_NE(Get(none).body.find("Authorization: Bearer TOKEN"), std::string::npos) << none;
  }
  EXPECT_TRUE(api_.asked.empty());
  const HttpResponse stranger = Get("Bearer made-up");
  EXPECT_EQ(stranger.status, 401);
  EXPECT_EQ(stranger.body.find("made-up"), std::string::npos) << "a token is never told";
  const HttpResponse guest = Get("Bearer guest-token");
  EXPECT_EQ(guest.status, 403);
  EXPECT_NE(guest.body.find("guest may not get /metrics"), std::string::npos) << guest.body;
  EXPECT_EQ(Get("Bearer prometheus-token", "/other").status, 403) << "a right is one to a path";
}

TEST_F(PathAccessTest, AnswersAreRememberedForAWhile) {
  Get("Bearer prometheus-token");
  Get("Bearer guest-token");
  const size_t before = api_.asked.size();
  now_ += 9s;
  EXPECT_EQ(Get("Bearer prometheus-token").status, 200);
  EXPECT_EQ(Get("Bearer guest-token").status, 403);
  EXPECT_EQ(api_.asked.size(), before);
  api_.rights = {{"guest", "/metrics"}};
  now_ += 2s;
  EXPECT_EQ(Get("Bearer guest-token").status, 200) << "somebody who was refused is asked for again soon";
  EXPECT_EQ(Get("Bearer prometheus-token").status, 200);
  now_ += 50s;
  EXPECT_EQ(Get("Bearer prometheus-token").status, 403) << "a right that was taken away is gone after a minute";
}

TEST_F(PathAccessTest, WhileTheApiServerIsAwayThoseWhoWereLetInStay) {
  Get("Bearer prometheus-token");
  Get("Bearer guest-token");
  api_.answers = false;
  now_ += 59min;
  EXPECT_EQ(Get("Bearer prometheus-token").status, 200);
  EXPECT_EQ(Get("Bearer guest-token").status, 503);
  EXPECT_EQ(Get("Bearer another").status, 503);
  now_ += 2min;
  EXPECT_EQ(Get("Bearer prometheus-token").status, 503);
}

TEST_F(PathAccessTest, WhoTriesTokensPushesOutNobody) {
  Get("Bearer prometheus-token");
  for (int i = 0; i < 1000; ++i) Get("Bearer guess-" + std::to_string(i));
  const size_t before = api_.asked.size();
  EXPECT_EQ(Get("Bearer prometheus-token").status, 200);
  EXPECT_EQ(api_.asked.size(), before);
  Get("Bearer guess-0");
  EXPECT_EQ(api_.asked.size(), before + 1) << "the number of answers that are remembered is bounded";
}

}  // namespace
}  // namespace headrace::kube
