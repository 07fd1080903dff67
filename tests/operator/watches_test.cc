#include "operator/watches.h"

#include <gtest/gtest.h>

#include <mutex>
#include <set>

#include "tests/fakes/api.h"

namespace headrace::op {
namespace {

using nlohmann::json;

json Labelled(const std::string& name, const std::string& input) {
  return {{"metadata", {{"namespace", "ml"}, {"name", name}, {"labels", {{"headrace.dev/input", input}}}}}};
}

TEST(WatchesTest, TellsWhichInputAChangeConcerns) {
  kube::FakeApi api;
  kube::Client client(&api, {});
  std::mutex mutex;
  std::multiset<std::string> keys;
  Watches watches(&api, &client, {.on_change = [&](const std::string& key) {
    const std::lock_guard lock(mutex);
    keys.insert(key);
  }});
  ASSERT_TRUE(api.WaitUntil([&] { return watches.synced() && api.open_watches() == 6; }));
  const auto told = [&](std::multiset<std::string> expected) {
    const bool reached = api.WaitUntil([&] {
      const std::lock_guard lock(mutex);
      return keys == expected;
    });
    const std::lock_guard lock(mutex);
    EXPECT_EQ(keys, expected);
    keys.clear();
    return reached;
  };
  api.Put(kube::kInputs, {{"metadata", {{"namespace", "ml"}, {"name", "clicks"}}}});
  EXPECT_TRUE(told({"ml/clicks"}));
  api.Put(kube::kPods, Labelled("p", "clicks"));
  EXPECT_TRUE(told({"ml/clicks"}));
  api.Put(kube::kPods, Labelled("p", "views"));
  EXPECT_TRUE(told({"ml/clicks", "ml/views"}));
  api.Remove(kube::kPods, "ml", "p");
  EXPECT_TRUE(told({"ml/views"}));
  api.Put(kube::kConfigMaps, Labelled("plan", "clicks"));
  EXPECT_TRUE(told({"ml/clicks"}));
  api.Put(kube::kServices, Labelled("headless", "views"));
  EXPECT_TRUE(told({"ml/views"}));
  api.Put(kube::kJobs, {{"metadata", {{"namespace", "ml"}, {"name", "train"}}}, {"spec", {{"completions", 2}}}});
  ASSERT_TRUE(api.WaitUntil([&] { return watches.jobs().Get("ml/train") != nullptr; }));
  EXPECT_TRUE(told({}));
  api.Put(kube::kJobs, {{"metadata", {{"namespace", "ml"}, {"name", "queued"}}},
                        {"spec",
                         {{"template",
                           {{"metadata",
                             {{"labels", {{"headrace.dev/input", "views"}}},
                              {"annotations", {{"headrace.dev/injected-plan", "0123456789abcdef"}}}}}}}}}});
  EXPECT_TRUE(told({"ml/views"}));
}

// By name, what there is of each; those of which there are none are left out.
std::set<std::string> Counted(const ConditionCounts& counts) {
  std::set<std::string> counted;
  for (const auto& [condition, status, inputs] : counts.Get()) {
    if (inputs != 0) counted.insert(condition + " " + status + " " + std::to_string(inputs));
  }
  return counted;
}

json WithConditions(json conditions) { return {{"status", {{"conditions", std::move(conditions)}}}}; }

TEST(ConditionCountsTest, CountEachInputOnceForEachCondition) {
  const json judged_well =
      WithConditions({{{"type", "Accepted"}, {"status", "True"}}, {{"type", "Ready"}, {"status", "True"}}});
  const json judged_ill =
      WithConditions({{{"type", "Accepted"}, {"status", "False"}}, {{"type", "Ready"}, {"status", "False"}}});
  const json odd = WithConditions({1, {{"type", "Ready"}, {"status", "Maybe"}}});
  ConditionCounts counts;
  EXPECT_EQ(Counted(counts), std::set<std::string>());
  const json none = json::object();
  for (const json* input : {&none, &judged_well, &judged_ill, &odd}) counts.OnChange(nullptr, input);
  EXPECT_EQ(Counted(counts),
            (std::set<std::string>{"Accepted True 1", "Accepted False 1", "Accepted Unknown 2", "Ready True 1",
                                   "Ready False 1", "Ready Unknown 2", "Degraded Unknown 4"}));
  counts.OnChange(&judged_ill, &judged_well);
  counts.OnChange(&odd, nullptr);
  EXPECT_EQ(Counted(counts), (std::set<std::string>{"Accepted True 2", "Accepted Unknown 1", "Ready True 2",
                                                    "Ready Unknown 1", "Degraded Unknown 3"}));
}

TEST(ConditionCountsTest, FollowTheInputs) {
  kube::FakeApi api;
  kube::Client client(&api, {});
  json input = {{"metadata", {{"namespace", "ml"}, {"name", "clicks"}}}};
  api.Put(kube::kInputs, input);
  Watches watches(&api, &client, {.on_change = [](const std::string&) {}});
  const auto reached = [&](const std::string& line) {
    return api.WaitUntil([&] { return Counted(watches.conditions()).contains(line); });
  };
  EXPECT_TRUE(reached("Accepted Unknown 1"));
  input["status"]["conditions"] = {{{"type", "Accepted"}, {"status", "True"}}};
  api.Put(kube::kInputs, input);
  EXPECT_TRUE(reached("Accepted True 1"));
  api.Remove(kube::kInputs, "ml", "clicks");
  EXPECT_TRUE(api.WaitUntil([&] { return Counted(watches.conditions()).empty(); }));
}

TEST(SlimTest, AWorkloadKeepsItsSizeAndWhetherItHasEnded) {
  json job = json::parse(R"({
    "metadata": {"name": "j", "uid": "u", "annotations": {"kubectl/last-applied": "long"}},
    "spec": {"completions": 3, "parallelism": 3, "template": {"spec": {"containers": []}}},
    "status": {"active": 1, "conditions": [{"type": "Complete", "status": "True", "message": "long"}]}})");
  SlimWorkload(job);
  EXPECT_EQ(job, json::parse(R"({"metadata": {"name": "j", "uid": "u", "annotations": {}}, "spec": {"completions": 3},
                                 "status": {"conditions": [{"type": "Complete", "status": "True"}]}})"));
}

TEST(SlimTest, AnInjectedTemplateKeepsItsPlan) {
  json job = json::parse(R"({"spec": {"template": {
    "metadata": {"labels": {"headrace.dev/input": "clicks"}, "annotations": {"headrace.dev/injected-plan": "h", "x": "y"}},
    "spec": {"containers": []}}}})");
  SlimWorkload(job);
  EXPECT_EQ(job, json::parse(R"({"spec": {"template": {
    "metadata": {"labels": {"headrace.dev/input": "clicks"}, "annotations": {"headrace.dev/injected-plan": "h"}}}}})"));
}

TEST(SlimTest, APlanKeepsEveryWordOfItAndNoSpaceBetween) {
  const json plan = {{"hash", "h"}, {"spec", {{"say", R"( "a  b" \" )"}, {"n", {1, 2.5, true, nullptr}}}}};
  json map = {
      {"metadata", {{"name", "m"}, {"managedBy", "x"}}}, {"immutable", true}, {"data", {{"plan.json", plan.dump(2)}}}};
  SlimPlan(map);
  EXPECT_EQ(map, json({{"metadata", {{"name", "m"}}}, {"immutable", true}, {"data", {{"plan.json", plan.dump()}}}}));
}

TEST(SlimTest, AServiceKeepsWhatOursIsHeldTo) {
  json service = json::parse(R"({
    "metadata": {"name": "s", "uid": "u", "selfLink": "x"},
    "spec": {"clusterIP": "None", "clusterIPs": ["None"], "ipFamilies": ["IPv4"], "publishNotReadyAddresses": true,
             "selector": {"a": "b"}, "ports": [{"name": "p", "port": 1, "protocol": "TCP", "targetPort": 1}]},
    "status": {"loadBalancer": {}}})");
  SlimService(service);
  EXPECT_EQ(service, json::parse(R"({
    "metadata": {"name": "s", "uid": "u"},
    "spec": {"clusterIP": "None", "publishNotReadyAddresses": true, "selector": {"a": "b"},
             "ports": [{"name": "p", "port": 1, "protocol": "TCP"}]}})"));
}

TEST(SlimTest, OddObjectsPass) {
  for (json odd : {json::object(), json{{"metadata", 1}, {"spec", "x"}, {"status", json::array()}},
                   json{{"spec", {{"template", 1}}}, {"status", {{"conditions", {1}}}}}, json{{"data", 1}},
                   json{{"data", {{"plan.json", 1}}}}, json{{"data", {{"plan.json", "\"\\"}}}},
                   json{{"spec", {{"ports", {1}}}}}, json{{"spec", {{"ports", 1}}}}}) {
    json service = odd, plan = odd;
    SlimService(service);
    SlimPlan(plan);
    SlimWorkload(odd);
  }
}

}  // namespace
}  // namespace headrace::op
