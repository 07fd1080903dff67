// Templates, as `headrace inject` sees them: the owner is there, its pods are not. Pods are tested by cases/.
#include "operator/admission/workload.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace headrace::op {
namespace {

using nlohmann::json;

TEST(WorldOfTemplate, IndexedJob) {
  const json job = {{"apiVersion", "batch/v1"},
                    {"kind", "Job"},
                    {"metadata", {{"name", "train"}}},
                    {"spec", {{"completions", 4}, {"completionMode", "Indexed"}}}};
  const auto world = WorldOfTemplate(job, json::object());
  ASSERT_TRUE(world.ok()) << world.status().ToString();
  EXPECT_EQ(world->num_workers, 4);
  EXPECT_EQ(world->index_label, "batch.kubernetes.io/job-completion-index");
  EXPECT_EQ(world->run_id_label, "batch.kubernetes.io/controller-uid");
}

TEST(WorldOfTemplate, WhereWorker0IsFound) {
  json owner = {{"apiVersion", "batch/v1"},
                {"kind", "Job"},
                {"metadata", {{"name", "train"}}},
                {"spec", {{"completions", 4}, {"completionMode", "Indexed"}}}};
  EXPECT_EQ(WorldOfTemplate(owner, json::object())->first_host, "train-0");
  EXPECT_EQ(WorldOfTemplate(owner, json::object())->subdomain, "");
  owner["metadata"] = {{"generateName", "train-"}};
  EXPECT_EQ(WorldOfTemplate(owner, json::object())->first_host, "") << "its name is not known yet";
  owner = {{"apiVersion", "apps/v1"},
           {"kind", "StatefulSet"},
           {"metadata", {{"name", "train"}}},
           {"spec", {{"replicas", 2}, {"serviceName", "mine"}}}};
  EXPECT_EQ(WorldOfTemplate(owner, json::object())->first_host, "train-0");
  EXPECT_EQ(WorldOfTemplate(owner, json::object())->subdomain, "mine");
  const json pod_template = {{"metadata", {{"annotations", {{"headrace.dev/coordinator", "first:9465"}}}}}};
  EXPECT_EQ(WorldOfTemplate(owner, pod_template)->coordinator, "first:9465");
}

TEST(WorldOfTemplate, JobWithoutIndex) {
  json job = {
      {"apiVersion", "batch/v1"}, {"kind", "Job"}, {"metadata", {{"name", "train"}}}, {"spec", {{"completions", 4}}}};
  const auto world = WorldOfTemplate(job, json::object());
  ASSERT_FALSE(world.ok());
  EXPECT_NE(world.status().message().find("completionMode: Indexed"), std::string::npos);
  job["spec"]["completions"] = 1;
  ASSERT_TRUE(WorldOfTemplate(job, json::object()).ok());
  EXPECT_EQ(WorldOfTemplate(job, json::object())->index_label, "");
}

TEST(WorldOfTemplate, StatefulSetHasNoLabelOfItsUid) {
  const json set = {{"apiVersion", "apps/v1"},
                    {"kind", "StatefulSet"},
                    {"metadata", {{"name", "train"}}},
                    {"spec", {{"replicas", 3}}}};
  const auto world = WorldOfTemplate(set, json::object());
  ASSERT_TRUE(world.ok());
  EXPECT_EQ(world->num_workers, 3);
  EXPECT_EQ(world->index_label, "apps.kubernetes.io/pod-index");
  EXPECT_EQ(world->run_id_label, "");
  EXPECT_EQ(world->run_id, "StatefulSet/train");
}

TEST(WorldOfTemplate, AKindOfAnotherGroupIsAnotherKind) {
  const json job = {{"apiVersion", "batch.volcano.sh/v1alpha1"},
                    {"kind", "Job"},
                    {"metadata", {{"name", "train"}}},
                    {"spec", {{"completions", 4}}}};
  const auto world = WorldOfTemplate(job, json::object());
  ASSERT_TRUE(world.ok());
  EXPECT_EQ(world->num_workers, 1);
}

TEST(FindWorld, AskedForTheOwnerByKindAndName) {
  const json pod = {{"metadata",
                     {{"labels", {{"apps.kubernetes.io/pod-index", "0"}}},
                      {"ownerReferences", json::array({{{"apiVersion", "apps/v1"},
                                                        {"kind", "StatefulSet"},
                                                        {"name", "s"},
                                                        {"uid", "u"},
                                                        {"controller", true}}})}}}};
  std::string asked;
  const auto world = FindWorld(pod, [&](std::string_view kind, const std::string& name) {
    asked = std::string(kind) + "/" + name;
    return std::make_shared<const json>(json{{"spec", json::object()}});
  });
  ASSERT_TRUE(world.ok());
  EXPECT_EQ(asked, "StatefulSet/s");
  EXPECT_EQ(world->num_workers, 1);  // replicas' default
  EXPECT_EQ(world->run_id, "u");
}

}  // namespace
}  // namespace headrace::op
