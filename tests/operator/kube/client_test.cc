#include "operator/kube/client.h"

#include <gtest/gtest.h>

#include "operator/kube/object.h"
#include "tests/fakes/api.h"

namespace headrace::kube {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

json Map(const std::string& name, const json& data = json::object()) {
  return {
      {"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"metadata", {{"namespace", "ml"}, {"name", name}}}, {"data", data}};
}

class ClientTest : public ::testing::Test {
 protected:
  FakeApi api_;
  std::vector<std::chrono::milliseconds> slept_;
  std::vector<std::string> counted_;
  Client client_{&api_,
                 {.page_size = 2,
                  .sleep = [this](std::chrono::milliseconds wait) { slept_.push_back(wait); },
                  .on_request = [this](std::string_view method, std::string_view code,
                                       double) { counted_.push_back(std::string(method) + " " + std::string(code)); }}};
};

TEST(PathTest, NamesEveryKindOfResource) {
  EXPECT_EQ(PathOf(kPods, "ml", "a"), "/api/v1/namespaces/ml/pods/a");
  EXPECT_EQ(PathOf(kPods, "", ""), "/api/v1/pods");
  EXPECT_EQ(PathOf(kInputs, "ml", "clicks"), "/apis/headrace.dev/v1alpha1/namespaces/ml/distributedinputs/clicks");
  EXPECT_EQ(PathOf(kMutatingWebhooks, "ignored", "headrace"),
            "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/headrace");
  EXPECT_EQ(PathOf(kPods, "ml", "../a?b"), "/api/v1/namespaces/ml/pods/..%2Fa%3Fb");
  EXPECT_EQ(QueryOf({{"labelSelector", "a/b=c,d"}, {"limit", "5"}}), "labelSelector=a%2Fb%3Dc%2Cd&limit=5");
}

TEST_F(ClientTest, AppliesCreatesPatchesReplacesAndDeletes) {
  ASSERT_TRUE(client_.Apply(kConfigMaps, Map("a", {{"k", "1"}})).ok());
  EXPECT_EQ(api_.Calls().back(), "PATCH /api/v1/namespaces/ml/configmaps/a?fieldManager=headrace-operator&force=true");
  EXPECT_EQ(client_.Create(kConfigMaps, Map("a")).status().code(), Code::kConflict);
  ASSERT_TRUE(client_.MergePatch(kConfigMaps, "ml", "a", {{"data", {{"k", nullptr}, {"m", "2"}}}}).ok());
  Result<json> now = client_.Get(kConfigMaps, "ml", "a");
  ASSERT_TRUE(now.ok());
  EXPECT_EQ((*now)["data"], json({{"m", "2"}}));
  EXPECT_EQ(*client_.GetRemembered(kConfigMaps, "ml", "a"), *now);
  EXPECT_EQ(api_.Calls().back(), "GET /api/v1/namespaces/ml/configmaps/a?resourceVersion=0");
  json stale = *now;
  ASSERT_TRUE(client_.Replace(kConfigMaps, Map("a", {{"n", "3"}})).ok());
  EXPECT_EQ(client_.Replace(kConfigMaps, stale).status().code(), Code::kConflict);
  EXPECT_EQ(client_.Delete(kConfigMaps, "ml", "a", "another-uid").code(), Code::kConflict);
  EXPECT_TRUE(client_.Delete(kConfigMaps, "ml", "a", UidOf(*now)).ok());
  EXPECT_TRUE(client_.Delete(kConfigMaps, "ml", "a").ok());
  EXPECT_EQ(client_.Get(kConfigMaps, "ml", "a").status().code(), Code::kNotFound);
}

TEST_F(ClientTest, StatusGoesToItsSubresource) {
  api_.Put(kInputs, {{"metadata", {{"namespace", "ml"}, {"name", "clicks"}}}, {"spec", {{"x", 1}}}});
  json status = {{"apiVersion", "headrace.dev/v1alpha1"},
                 {"kind", "DistributedInput"},
                 {"metadata", {{"namespace", "ml"}, {"name", "clicks"}}},
                 {"spec", {{"x", 2}}},
                 {"status", {{"plan", {{"hash", "h"}}}}}};
  ASSERT_TRUE(client_.ApplyStatus(kInputs, status).ok());
  EXPECT_EQ(api_.Find(kInputs, "ml", "clicks")["spec"]["x"], 1);
  EXPECT_EQ(api_.Find(kInputs, "ml", "clicks")["status"]["plan"]["hash"], "h");
}

TEST_F(ClientTest, ListsEveryPageAndNamesTheKind) {
  for (const char* name : {"a", "b", "c", "d", "e"})
    api_.Put(kPods, {{"metadata", {{"namespace", "ml"}, {"name", name}}}});
  const Result<Client::Listing> listing = client_.List(kPods, "ml", "");
  ASSERT_TRUE(listing.ok());
  EXPECT_EQ(listing->items.size(), 5u);
  EXPECT_EQ(listing->items[4]["kind"], "Pod");
  EXPECT_EQ(api_.CountCalls("limit=2"), 3u);
  EXPECT_EQ(listing->resource_version, ResourceVersionOf(api_.Find(kPods, "ml", "e")));
}

TEST_F(ClientTest, AListWhoseTokenExpiredStartsAgainOnce) {
  for (const char* name : {"a", "b", "c"}) api_.Put(kPods, {{"metadata", {{"namespace", "ml"}, {"name", name}}}});
  api_.FailNext("continue=", StatusReply(410, "expired"));
  const Result<Client::Listing> listing = client_.List(kPods, "", "");
  ASSERT_TRUE(listing.ok());
  EXPECT_EQ(listing->items.size(), 3u);
  api_.FailNext("continue=", StatusReply(410, "expired"), 5);
  EXPECT_EQ(client_.List(kPods, "", "").status().code(), Code::kExhausted);
}

TEST_F(ClientTest, FailuresKeepTheServersMessageAndTheirMeaning) {
  const std::pair<int, Code> expected[] = {{400, Code::kInvalidArgument}, {401, Code::kUnavailable},
                                           {403, Code::kUnavailable},     {404, Code::kNotFound},
                                           {409, Code::kConflict},        {410, Code::kExhausted},
                                           {422, Code::kInvalidArgument}, {429, Code::kUnavailable},
                                           {500, Code::kUnavailable},     {503, Code::kUnavailable}};
  for (const auto& [http, code] : expected) {
    api_.FailNext("GET", StatusReply(http, "because"));
    const Status status = client_.Get(kPods, "ml", "a").status();
    EXPECT_EQ(status.code(), code) << http;
    EXPECT_EQ(status.message(), "GET /api/v1/namespaces/ml/pods/a: HTTP " + std::to_string(http) + ": because");
  }
  EXPECT_TRUE(slept_.empty());
}

TEST_F(ClientTest, WaitsAsLongAsTheServerAsks) {
  HttpReply busy = StatusReply(429, "busy");
  busy.headers["retry-after"] = "2";
  api_.Put(kPods, {{"metadata", {{"namespace", "ml"}, {"name", "a"}}}});
  api_.FailNext("GET", busy, 2);
  EXPECT_TRUE(client_.Get(kPods, "ml", "a").ok());
  EXPECT_EQ(slept_, (std::vector<std::chrono::milliseconds>{2s, 2s}));
  EXPECT_EQ(counted_, (std::vector<std::string>{"GET 429", "GET 429", "GET 200"}));
  busy.headers["retry-after"] = "86400";
  api_.FailNext("GET", busy, 100);
  slept_.clear();
  EXPECT_EQ(client_.Get(kPods, "ml", "a").status().code(), Code::kUnavailable);
  EXPECT_EQ(slept_, (std::vector<std::chrono::milliseconds>{5s, 5s, 5s}));
}

TEST_F(ClientTest, NoReplyIsCountedAndUnavailable) {
  api_.FailNext("GET", {});
  EXPECT_EQ(client_.Get(kPods, "ml", "a").status().code(), Code::kUnavailable);
  EXPECT_EQ(counted_, std::vector<std::string>{"GET <error>"});
}

TEST_F(ClientTest, AReplyThatIsNoObjectIsUnavailable) {
  for (const char* body : {"", "[1]", "<html>", "{\"a\":"}) {
    api_.FailNext("GET", {200, {}, body});
    EXPECT_EQ(client_.Get(kPods, "ml", "a").status().code(), Code::kUnavailable) << body;
  }
}

TEST(ObjectTest, MissingAndMistypedFieldsReadAsEmpty) {
  for (const json& odd : {json(), json(1), json::array(), json::object(), json{{"metadata", 1}},
                          json{{"metadata", {{"name", 5}, {"labels", "x"}, {"ownerReferences", 3}}}}}) {
    EXPECT_EQ(NameOf(odd), "");
    EXPECT_EQ(LabelOf(odd, "a"), "");
    EXPECT_EQ(ControllerOf(odd), nullptr);
  }
  const json owned = {
      {"metadata",
       {{"ownerReferences", json::array({{{"kind", "A"}}, {{"kind", "Job"}, {"controller", true}, {"uid", "u"}}})}}}};
  ASSERT_NE(ControllerOf(owned), nullptr);
  EXPECT_EQ((*ControllerOf(owned))["kind"], "Job");
  EXPECT_EQ(SplitKey("ml/clicks").name_space, "ml");
  EXPECT_EQ(SplitKey("ml/clicks").name, "clicks");
}

}  // namespace
}  // namespace headrace::kube
