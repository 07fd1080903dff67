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
}

TEST(SlimTest, APodKeepsWhatIsRead) {
  json pod = Labelled("p", "clicks");
  pod["metadata"]["annotations"] = {{"headrace.dev/injected-plan", "h"}, {"kubectl/last-applied", "long"}};
  pod["metadata"]["ownerReferences"] = json::array({{{"uid", "u"}}});
  pod["spec"] = {{"nodeName", "n"},
                 {"containers", json::array({{{"name", "trainer"}}})},
                 {"initContainers", json::array({{{"name", "istio-proxy"}},
                                                 {{"name", "headrace-loader"}, {"env", {1}}, {"image", "i"}}})}};
  pod["status"] = {
      {"phase", "Running"},
      {"podIP", "10.0.0.1"},
      {"conditions", json::array({{{"type", "PodScheduled"}}})},
      {"initContainerStatuses", json::array({{{"name", "x"}}, {{"name", "headrace-loader"}, {"ready", true}}})}};
  SlimPod(pod);
  json expected = Labelled("p", "clicks");
  expected["metadata"]["annotations"] = {{"headrace.dev/injected-plan", "h"}};
  expected["metadata"]["ownerReferences"] = json::array({{{"uid", "u"}}});
  expected["spec"]["initContainers"] = json::array({{{"name", "headrace-loader"}, {"env", {1}}}});
  expected["status"] = {{"phase", "Running"},
                        {"conditions", json::array({{{"type", "PodScheduled"}}})},
                        {"initContainerStatuses", json::array({{{"name", "headrace-loader"}, {"ready", true}}})}};
  EXPECT_EQ(pod, expected);
}

TEST(SlimTest, AWorkloadKeepsItsSize) {
  json job = {{"metadata", {{"name", "j"}, {"uid", "u"}}},
              {"spec", {{"completions", 3}, {"template", {{"spec", 1}}}}},
              {"status", {{"active", 1}}}};
  SlimWorkload(job);
  EXPECT_EQ(job, (json{{"metadata", {{"name", "j"}, {"uid", "u"}}}, {"spec", {{"completions", 3}}}}));
}

TEST(SlimTest, OddObjectsPass) {
  for (json odd : {json::object(), json{{"metadata", 1}, {"spec", "x"}, {"status", json::array()}},
                   json{{"spec", {{"initContainers", "x"}}}}}) {
    SlimPod(odd);
    SlimWorkload(odd);
  }
}

}  // namespace
}  // namespace headrace::op
