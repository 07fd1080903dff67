// What text cases cannot show: malformed requests, operations other than creation, bugs, and waiting for the caches.
#include "operator/admission/server.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

namespace headrace::op {
namespace {

using nlohmann::json;

json ReviewOf(const json& request) {
  return {{"apiVersion", "admission.k8s.io/v1"}, {"kind", "AdmissionReview"}, {"request", request}};
}

json CreationOf(const json& pod) {
  return {{"uid", "u1"},
          {"operation", "CREATE"},
          {"namespace", "ml"},
          {"resource", {{"resource", "pods"}}},
          {"object", pod}};
}

json OptedIn() {
  return {{"metadata", {{"name", "p"}, {"labels", {{"headrace.dev/input", "numbers"}}}}},
          {"spec", {{"containers", json::array({{{"name", "trainer"}}})}}}};
}

kube::Object NumbersInput() {
  return std::make_shared<const json>(json{{"metadata", {{"name", "numbers"}, {"namespace", "ml"}, {"uid", "i1"}}},
                                           {"spec", {{"source", {{"range", {{"stop", 10}}}}}}}});
}

class ServerTest : public ::testing::Test {
 protected:
  HttpHandler Handler() {
    AdmissionDeps deps;
    deps.inputs = &inputs_;
    deps.jobs = &jobs_;
    deps.stateful_sets = &stateful_sets_;
    deps.loader_image = "loader";
    deps.input_wait = deps.owner_wait = wait_;
    deps.on_review = [this](std::string_view result, std::string_view) { counted_ = result; };
    return MakeAdmissionHandler(deps);
  }
  kube::Store inputs_, jobs_, stateful_sets_;
  std::chrono::milliseconds wait_{0};
  std::string counted_;
};

TEST_F(ServerTest, RefusesWhatIsNoReview) {
  const HttpHandler handler = Handler();
  EXPECT_EQ(handler({"GET", "/inject-pod", "", ""}).status, 404);
  EXPECT_EQ(handler({"POST", "/", "", "{}"}).status, 404);
  EXPECT_EQ(handler({"POST", "/inject-pod", "", ""}).status, 400);
  EXPECT_EQ(handler({"POST", "/inject-pod", "", "{\"request\":"}).status, 400);
  EXPECT_EQ(handler({"POST", "/inject-pod", "", "[1,2]"}).status, 400);
  EXPECT_EQ(handler({"POST", "/inject-pod", "", json{{"apiVersion", "admission.k8s.io/v1"}}.dump()}).status, 400);
  json old = ReviewOf(CreationOf(OptedIn()));
  old["apiVersion"] = "admission.k8s.io/v1beta1";
  EXPECT_EQ(handler({"POST", "/inject-pod", "", old.dump()}).status, 400);
}

TEST_F(ServerTest, LetsOtherOperationsThrough) {
  json update = CreationOf(OptedIn());
  update["operation"] = "UPDATE";
  json other = CreationOf(OptedIn());
  other["resource"]["resource"] = "deployments";
  for (const json& request : {update, other}) {
    const json answer = json::parse(Handler()({"POST", "/inject-pod", "", ReviewOf(request).dump()}).body);
    EXPECT_EQ(answer["response"]["allowed"], true);
    EXPECT_FALSE(answer["response"].contains("patch"));
    EXPECT_EQ(counted_, "skipped");
  }
}

TEST_F(ServerTest, AnExceptionIsA500WithTheUid) {
  inputs_.Put(NumbersInput());
  json no_object = CreationOf(OptedIn());
  no_object.erase("object");
  const HttpResponse response = Handler()({"POST", "/inject-pod", "", ReviewOf(no_object).dump()});
  EXPECT_EQ(response.status, 500);
  const json answer = json::parse(response.body);
  EXPECT_EQ(answer["response"]["uid"], "u1");
  EXPECT_EQ(answer["response"]["allowed"], false);
  EXPECT_EQ(counted_, "error");
}

TEST_F(ServerTest, WaitsForAnInputMadeAMomentAgo) {
  wait_ = std::chrono::seconds(20);
  const HttpHandler handler = Handler();
  std::thread informer([&] { inputs_.Put(NumbersInput()); });
  const json answer = json::parse(handler({"POST", "/inject-pod", "", ReviewOf(CreationOf(OptedIn())).dump()}).body);
  informer.join();
  EXPECT_EQ(answer["response"]["allowed"], true) << answer;
  EXPECT_EQ(answer["response"]["patchType"], "JSONPatch");
}

}  // namespace
}  // namespace headrace::op
