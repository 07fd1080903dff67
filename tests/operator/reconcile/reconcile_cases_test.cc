// Each file in cases/ holds an input, what else the caches have, and what one reconcile must do: objects applied and
// removed, the status and the events. Once all that is in the caches, a second reconcile must write nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>

#include "common/spec/names.h"
#include "common/spec/object_names.h"
#include "common/spec/plan.h"
#include "operator/kube/object.h"
#include "operator/reconcile/reconciler.h"
#include "tests/operator/yaml_case.h"

namespace headrace::op {
namespace {

using nlohmann::json;
using testing::LoadYaml;
using testing::Missing;
using testing::Substitute;

class RecordingClient : public kube::Client {
 public:
  RecordingClient() : Client(nullptr, {}) {}
  Result<json> Apply(const kube::Resource& resource, const json& object) override {
    if (!fail_apply.ok()) return fail_apply;
    EXPECT_EQ(resource.kind, object.at("kind"));
    applied.push_back(object);
    return object;
  }
  Result<json> ApplyStatus(const kube::Resource& resource, const json& object) override {
    EXPECT_EQ(resource.plural, "distributedinputs");
    statuses.push_back(object.at("status"));
    return object;
  }
  Status Delete(const kube::Resource& resource, const std::string&, const std::string& name,
                const std::string& uid) override {
    EXPECT_FALSE(uid.empty());
    removed.push_back(resource.kind + " " + name);
    return {};
  }
  Status fail_apply;
  std::vector<json> applied, statuses;
  std::vector<std::string> removed;
};

class RecordingEvents : public kube::EventRecorder {
 public:
  void Record(const json& regarding, kube::EventType type, const std::string& reason, const std::string&,
              const std::string& note) override {
    EXPECT_EQ(regarding.at("kind"), "DistributedInput");
    events.push_back(std::string(type == kube::EventType::kNormal ? "Normal " : "Warning ") + reason + " " + note);
  }
  std::vector<std::string> events;
};

struct Cluster {
  kube::Store inputs, pods, config_maps, services;
  RecordingClient client;
  RecordingEvents events;
  std::chrono::system_clock::time_point now{};

  void Put(json object) {
    const std::string kind = object.at("kind");
    kube::Store& store = kind == "DistributedInput" ? inputs
                         : kind == "ConfigMap"      ? config_maps
                         : kind == "Service"        ? services
                                                    : pods;
    store.Put(std::make_shared<const json>(std::move(object)));
  }
  kube::Outcome Reconcile(const std::string& key) {
    return Reconciler({&client, &inputs, &pods, &config_maps, &services, &events, [this] { return now; }})
        .Reconcile(key);
  }
};

std::chrono::system_clock::time_point ParseTime(const std::string& text) {
  std::tm utc{};
  EXPECT_NE(strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &utc), nullptr) << text;
  return std::chrono::system_clock::from_time_t(timegm(&utc));
}

// A ConfigMap as the operator makes it for `spec`.
json PlanMap(const json& spec, const std::string& created) {
  const Plan plan = CompilePlan(*ParseInputSpec(spec), "ml/clicks");
  return {{"kind", "ConfigMap"},
          {"metadata",
           {{"name", names::PlanConfigMapName("clicks", plan.hash)},
            {"namespace", "ml"},
            {"uid", "map-" + plan.hash},
            {"creationTimestamp", created},
            {"labels", {{names::kInputLabel, "clicks"}}},
            {"ownerReferences", {{{"kind", "DistributedInput"}, {"uid", "input-1"}, {"controller", true}}}}}},
          {"data", {{names::kPlanFile, ToJson(plan).dump()}}}};
}

class ReconcileCase : public ::testing::TestWithParam<std::string> {};

TEST_P(ReconcileCase, Acts) {
  json given = LoadYaml(GetParam());
  // {{HASH}} stands for the plan of the input's spec, {{OLD_HASH}} for that of `old_spec`.
  json input = given.at("input");
  if (const auto spec = ParseInputSpec(input.at("spec")); spec.ok()) {
    given = Substitute(given, "{{HASH}}", CompilePlan(*spec, "").hash);
  }
  Cluster cluster;
  if (given.contains("old_spec")) {
    given = Substitute(given, "{{OLD_HASH}}", CompilePlan(*ParseInputSpec(given["old_spec"]), "").hash);
    cluster.Put(PlanMap(given["old_spec"], "2026-01-01T00:00:00Z"));
  }
  if (given.contains("plan_created")) cluster.Put(PlanMap(input["spec"], given["plan_created"]));
  cluster.now = ParseTime(given.at("now"));
  input = given.at("input");
  cluster.Put(input);
  for (const json& object : given.value("objects", json::array())) cluster.Put(object);

  const kube::Outcome outcome = cluster.Reconcile("ml/clicks");
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.ToString();
  const json& expect = given.at("expect");
  json applied = json::array();
  for (const json& object : cluster.client.applied) {
    applied.push_back(object.at("kind").get<std::string>() + " " + kube::NameOf(object));
  }
  EXPECT_EQ(applied, expect.at("applied"));
  EXPECT_EQ(json(cluster.client.removed), expect.at("removed"));
  EXPECT_EQ(Missing(expect.value("objects", cluster.client.applied), cluster.client.applied), "");
  if (expect.contains("look_again_ms")) {
    ASSERT_TRUE(outcome.requeue_after.has_value());
    EXPECT_EQ(outcome.requeue_after->count(), expect["look_again_ms"].get<int64_t>());
  } else {
    EXPECT_FALSE(outcome.requeue_after.has_value());
  }
  if (expect.at("status").is_null()) {
    EXPECT_TRUE(cluster.client.statuses.empty()) << cluster.client.statuses[0].dump(2);
  } else {
    ASSERT_EQ(cluster.client.statuses.size(), 1u);
    json status = cluster.client.statuses[0];
    json conditions;
    for (const json& condition : status.at("conditions")) {
      EXPECT_EQ(condition.at("observedGeneration"), input["metadata"]["generation"]);
      conditions[condition.at("type").get<std::string>()] = condition.at("status").get<std::string>() + " " +
                                                            condition.at("reason").get<std::string>() + ": " +
                                                            condition.at("message").get<std::string>();
      conditions[condition.at("type").get<std::string>() + "Since"] = condition.at("lastTransitionTime");
    }
    status["conditions"] = conditions;
    EXPECT_EQ(Missing(expect["status"], status), "") << status.dump(2);
  }
  ASSERT_EQ(cluster.events.events.size(), expect.at("events").size()) << json(cluster.events.events).dump(2);
  EXPECT_EQ(Missing(expect["events"], cluster.events.events), "") << json(cluster.events.events).dump(2);

  // Settled: the caches now hold what was written.
  if (!cluster.client.statuses.empty()) {
    input["status"] = cluster.client.statuses[0];
    cluster.Put(input);
  }
  for (const json& object : cluster.client.applied) cluster.Put(object);
  for (const std::string& name : cluster.client.removed) {
    cluster.config_maps.Delete("ml/" + name.substr(name.find(' ') + 1));
  }
  for (const json& object : cluster.client.applied) cluster.Put(object);
  cluster.client.applied.clear();
  cluster.client.statuses.clear();
  cluster.client.removed.clear();
  cluster.events.events.clear();
  if (expect.value("settles", true)) {
    ASSERT_TRUE(cluster.Reconcile("ml/clicks").status.ok());
    EXPECT_TRUE(cluster.client.applied.empty()) << json(cluster.client.applied).dump(2);
    EXPECT_TRUE(cluster.client.statuses.empty()) << json(cluster.client.statuses).dump(2);
    EXPECT_TRUE(cluster.client.removed.empty());
    EXPECT_TRUE(cluster.events.events.empty()) << json(cluster.events.events).dump(2);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, ReconcileCase,
                         ::testing::ValuesIn(testing::CaseFiles(HEADRACE_SOURCE_DIR "/tests/operator/reconcile/cases")),
                         [](const auto& param) { return testing::CaseName(param.param); });

json Numbers() {
  return {{"kind", "DistributedInput"},
          {"metadata", {{"name", "clicks"}, {"namespace", "ml"}, {"uid", "input-1"}, {"generation", 1}}},
          {"spec", {{"source", {{"range", {{"stop", 10}}}}}}}};
}

TEST(Reconciler, LeavesAGoneOrGoingInputAlone) {
  Cluster cluster;
  EXPECT_TRUE(cluster.Reconcile("ml/clicks").status.ok());
  json going = Numbers();
  going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  cluster.Put(going);
  EXPECT_TRUE(cluster.Reconcile("ml/clicks").status.ok());
  EXPECT_TRUE(cluster.client.applied.empty());
  EXPECT_TRUE(cluster.client.statuses.empty());
}

TEST(Reconciler, WritesNoStatusForWhatItCouldNotMake) {
  Cluster cluster;
  cluster.Put(Numbers());
  cluster.client.fail_apply = Unavailable("503");
  EXPECT_EQ(cluster.Reconcile("ml/clicks").status.code(), Code::kUnavailable);
  EXPECT_TRUE(cluster.client.statuses.empty());
  EXPECT_TRUE(cluster.events.events.empty());

  cluster.client.fail_apply = InvalidArgument("quota exceeded");
  EXPECT_EQ(cluster.Reconcile("ml/clicks").status.code(), Code::kInvalidArgument);
  ASSERT_EQ(cluster.events.events.size(), 1u);
  EXPECT_EQ(cluster.events.events[0], "Warning ApplyFailed quota exceeded");
}

TEST(Reconciler, ThePlanIsReadBackByTheLoader) {
  Cluster cluster;
  cluster.Put(Numbers());
  ASSERT_TRUE(cluster.Reconcile("ml/clicks").status.ok());
  const json& map = cluster.client.applied.at(0);
  EXPECT_EQ(map.at("immutable"), true);
  const auto plan = ParsePlan(json::parse(map.at("data").at("plan.json").get<std::string>()));
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_EQ(kube::NameOf(map), "clicks-plan-" + plan->hash);
  EXPECT_EQ(plan->input, "ml/clicks");
}

}  // namespace
}  // namespace headrace::op
