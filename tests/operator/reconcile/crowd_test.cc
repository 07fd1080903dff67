// Many inputs at once: each has its status first, and what no pod uses is made when no other input waits.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "common/spec/names.h"
#include "tests/operator/reconcile/cluster.h"

namespace headrace::op {
namespace {

using nlohmann::json;
using testing::Cluster;
using testing::Numbers;
using testing::SecretText;

// A new input among others, which has its status and nothing else yet. Returns it as the API server has it then.
json PutOff(Cluster& cluster) {
  json input = Numbers();
  cluster.Put(input);
  cluster.has_time = false;
  EXPECT_TRUE(cluster.Reconcile("ml/clicks").put_off);
  input["status"] = cluster.client.statuses.at(0);
  cluster.Put(input);
  return input;
}

TEST(Crowd, ANewInputHasItsStatusFirst) {
  Cluster cluster;
  cluster.Put(Numbers());
  cluster.has_time = false;
  EXPECT_TRUE(cluster.Reconcile("ml/clicks").put_off);
  ASSERT_EQ(cluster.client.statuses.size(), 1u);
  EXPECT_EQ(cluster.client.statuses[0]["conditions"][0]["reason"], "Accepted");
  EXPECT_TRUE(cluster.client.applied.empty());
  EXPECT_TRUE(cluster.client.secret.is_null());
  EXPECT_TRUE(cluster.events.events.empty());
  EXPECT_EQ(cluster.client.looks, 0) << "one request";
  const std::string message = cluster.client.statuses[0]["conditions"][0]["message"];

  json input = Numbers();
  input["status"] = cluster.client.statuses[0];
  cluster.Put(input);
  EXPECT_TRUE(cluster.Reconcile("ml/clicks").put_off) << "its own status is no reason to pass the others";
  EXPECT_TRUE(cluster.client.applied.empty());

  cluster.has_time = true;
  EXPECT_FALSE(cluster.Reconcile("ml/clicks").put_off);
  EXPECT_EQ(cluster.client.applied.size(), 2u);
  EXPECT_EQ(SecretText(cluster.client.secret, "tls.crt").substr(0, 10), "-----BEGIN");
  EXPECT_EQ(cluster.client.statuses.size(), 1u);
  EXPECT_EQ(cluster.events.events, std::vector<std::string>{"Normal Accepted " + message});
}

TEST(Crowd, AnInputThatIsWrongSaysSoAtOnce) {
  Cluster cluster;
  json input = Numbers();
  input["spec"]["pipeline"] = json::array({{{"batch", {{"size", -4}}}}});
  cluster.Put(input);
  cluster.has_time = false;
  EXPECT_FALSE(cluster.Reconcile("ml/clicks").put_off);
  ASSERT_EQ(cluster.client.statuses.size(), 1u);
  EXPECT_EQ(cluster.client.statuses[0]["conditions"][0]["reason"], "InvalidSpec");
  EXPECT_EQ(cluster.events.events.size(), 1u);
}

TEST(Crowd, APodWaitsForNobody) {
  Cluster cluster;
  const json input = PutOff(cluster);
  const json annotations = {{names::kInjectedAnnotation, input["status"]["plan"]["hash"]}};
  cluster.Put({{"kind", "Pod"},
               {"metadata",
                {{"name", "train-0"},
                 {"namespace", "ml"},
                 {"uid", "pod-1"},
                 {"labels", {{names::kInputLabel, "clicks"}}},
                 {"annotations", annotations}}}});
  EXPECT_FALSE(cluster.Reconcile("ml/clicks").put_off);
  EXPECT_EQ(cluster.client.applied.size(), 2u);
  EXPECT_FALSE(cluster.client.secret.is_null());
  EXPECT_EQ(cluster.client.statuses.size(), 2u) << "with its run";
}

// Its pods come when a queue lets them, maybe after the input has changed: then it is too late for this plan.
TEST(Crowd, ATemplateThatIsPinnedToThePlanWaitsForNobody) {
  Cluster cluster;
  cluster.has_time = false;
  cluster.Put(Numbers());
  cluster.Put({{"kind", "Job"},
               {"metadata", {{"name", "train"}, {"namespace", "ml"}}},
               {"spec",
                {{"template",
                  {{"metadata",
                    {{"labels", {{names::kInputLabel, "clicks"}}},
                     {"annotations", {{names::kInjectedAnnotation, "0123456789abcdef"}}}}}}}}}});
  EXPECT_FALSE(cluster.Reconcile("ml/clicks").put_off);
  EXPECT_EQ(cluster.client.applied.size(), 2u);
}

// Nothing of what was put off is in the operator's memory alone.
TEST(Crowd, WhatWasPutOffIsMadeByTheNextLeader) {
  Cluster cluster;
  const json input = PutOff(cluster);
  Cluster next;
  next.Put(input);
  ASSERT_TRUE(next.Reconcile("ml/clicks").status.ok());
  EXPECT_EQ(next.client.applied.size(), 2u);
  EXPECT_FALSE(next.client.secret.is_null());
  EXPECT_TRUE(next.client.statuses.empty());
  EXPECT_EQ(next.events.events.size(), 1u);
}

TEST(Crowd, WhatWasPutOffAndCannotBeMadeIsTold) {
  Cluster cluster;
  PutOff(cluster);
  cluster.has_time = true;
  cluster.client.fail_apply = InvalidArgument("quota exceeded");
  EXPECT_EQ(cluster.Reconcile("ml/clicks").status.code(), Code::kInvalidArgument);
  EXPECT_EQ(cluster.events.events, std::vector<std::string>{"Warning ApplyFailed quota exceeded"});
}

}  // namespace
}  // namespace headrace::op
