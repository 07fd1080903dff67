// Each file in cases/ holds an input, what else the caches have, and what one reconcile must do: objects applied and
// removed, the status and the events. Once all that is in the caches, a second reconcile must write nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "common/net/certificates.h"
#include "common/spec/names.h"
#include "common/spec/object_names.h"
#include "common/spec/plan.h"
#include "operator/kube/object.h"
#include "tests/operator/reconcile/cluster.h"
#include "tests/operator/yaml_case.h"

namespace headrace::op {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using testing::Cluster;
using testing::LoadYaml;
using testing::Missing;
using testing::Numbers;
using testing::ParseTime;
using testing::RecordingClient;
using testing::SecretText;
using testing::Substitute;

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

// What the loaders' Secret has been through: by default it was made a day ago, for the input that is there.
void MakePeerKeys(Cluster& cluster, const json& given) {
  const std::map<std::string, PeerKeysStep> steps = {{"Make", PeerKeysStep::kMake},
                                                     {"AddAuthority", PeerKeysStep::kAddAuthority},
                                                     {"RenewCertificate", PeerKeysStep::kRenewCertificate}};
  const json day_old = json::array({{{"step", "Make"}}});
  for (const json& past : given.value("peer_keys", day_old)) {
    const auto at = past.contains("at") ? ParseTime(past["at"]) : cluster.now - std::chrono::hours(24);
    const std::string uid = past.value("owner", given["input"]["metadata"]["uid"].get<std::string>());
    const json metadata = {{"name", "clicks-headrace-peers"},
                           {"namespace", "ml"},
                           {"ownerReferences", {{{"kind", "DistributedInput"}, {"uid", uid}, {"controller", true}}}}};
    const Status taken = PeerKeys(&cluster.client).Take(steps.at(past.at("step")), metadata, at);
    EXPECT_TRUE(taken.ok()) << taken.ToString();
  }
}

// What was done to the Secret, as the words of a case.
std::string PeerKeysChange(const json& before, const json& now) {
  if (before == now) return "nothing";
  if (before.is_null()) return "made";
  const bool certificate = SecretText(before, "tls.crt") != SecretText(now, "tls.crt");
  const bool added = SecretText(now, "ca.crt").ends_with("\n" + SecretText(before, "ca.crt"));
  if (SecretText(before, "ca.crt") == SecretText(now, "ca.crt")) return certificate ? "certificate renewed" : "other";
  return added && !certificate ? "authority added" : !added && certificate ? "made" : "other";
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

  MakePeerKeys(cluster, given);
  const json peer_keys = cluster.client.secret;

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
    EXPECT_GE(outcome.requeue_after.value_or(12h), 12h);  // to see whether keys are due
  }
  EXPECT_EQ(PeerKeysChange(peer_keys, cluster.client.secret), expect.value("peer_keys", "nothing"));
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
  cluster.Settle();
  for (const std::string& name : cluster.client.removed) {
    cluster.config_maps.Delete("ml/" + name.substr(name.find(' ') + 1));
  }
  cluster.Settle();
  cluster.client.applied.clear();
  cluster.client.statuses.clear();
  cluster.client.removed.clear();
  cluster.events.events.clear();
  const json settled_keys = cluster.client.secret;
  if (expect.value("settles", true)) {
    ASSERT_TRUE(cluster.Reconcile("ml/clicks").status.ok());
    EXPECT_TRUE(cluster.client.applied.empty()) << json(cluster.client.applied).dump(2);
    EXPECT_TRUE(cluster.client.statuses.empty()) << json(cluster.client.statuses).dump(2);
    EXPECT_TRUE(cluster.client.removed.empty());
    EXPECT_TRUE(cluster.events.events.empty()) << json(cluster.events.events).dump(2);
    EXPECT_EQ(cluster.client.secret, settled_keys);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, ReconcileCase,
                         ::testing::ValuesIn(testing::CaseFiles(HEADRACE_SOURCE_DIR "/tests/operator/reconcile/cases")),
                         [](const auto& param) { return testing::CaseName(param.param); });

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
  EXPECT_EQ(cluster.events.events, std::vector<std::string>{"Warning ApplyFailed 503"});

  cluster.client.fail_apply = Conflict("somebody else wrote");
  EXPECT_EQ(cluster.Reconcile("ml/clicks").status.code(), Code::kConflict);
  EXPECT_EQ(cluster.events.events.size(), 1u) << "it is tried again at once";

  cluster.client.fail_apply = InvalidArgument("no such field");
  EXPECT_EQ(cluster.Reconcile("ml/clicks").status.code(), Code::kInvalidArgument);
  EXPECT_EQ(cluster.events.events.back(), "Warning ApplyFailed no such field");
}

TEST(Reconciler, WaitsForTheCachesToShowWhatItWrote) {
  class Answering : public RecordingClient {
    Result<json> ApplyStatus(const kube::Resource& resource, const json& object) override {
      EXPECT_TRUE(RecordingClient::ApplyStatus(resource, object).ok());
      json answer = object;
      answer["metadata"]["resourceVersion"] = "7";
      return answer;
    }
  } client;
  Cluster cluster;
  cluster.Put(Numbers());
  std::vector<std::string> writes;
  const Reconciler reconciler({&client,
                               &cluster.inputs,
                               &cluster.pods,
                               &cluster.config_maps,
                               &cluster.services,
                               &cluster.jobs,
                               &cluster.stateful_sets,
                               &cluster.events,
                               &cluster.peer_keys,
                               &cluster.own_writes,
                               [&] { return cluster.now; },
                               {},
                               [&](const std::string& resource, bool written) {
                                 writes.push_back(resource + (written ? " written" : " unchanged"));
                               }});
  ASSERT_TRUE(reconciler.Reconcile("ml/clicks").status.ok());
  ASSERT_EQ(client.statuses.size(), 1u);
  EXPECT_TRUE(reconciler.Reconcile("ml/clicks").requeue_after.has_value());
  EXPECT_EQ(client.statuses.size(), 1u) << "the cache is behind: what it holds is not what is";
  json input = Numbers();
  input["metadata"]["resourceVersion"] = "7";
  input["status"] = client.statuses[0];
  cluster.Put(input);
  for (const json& object : client.applied) cluster.Put(object);
  ASSERT_TRUE(reconciler.Reconcile("ml/clicks").status.ok());
  EXPECT_EQ(client.statuses.size(), 1u);
  EXPECT_EQ(writes, (std::vector<std::string>{"configmaps written", "services written", "distributedinputs written",
                                              "distributedinputs unchanged"}));
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

TEST(Reconciler, ASecretThatWasThereAfterAllIsRead) {
  Cluster cluster;
  cluster.now = ParseTime("2026-01-01T00:00:00Z");
  json earlier = Numbers();
  earlier["metadata"]["uid"] = "input-0";
  cluster.Put(earlier);
  ASSERT_TRUE(cluster.Reconcile("ml/clicks").status.ok());
  const json left = cluster.client.secret;
  cluster.inputs.Delete("ml/clicks");
  ASSERT_TRUE(cluster.Reconcile("ml/clicks").status.ok());

  cluster.Put(Numbers());
  EXPECT_EQ(cluster.Reconcile("ml/clicks").status.code(), Code::kConflict);
  EXPECT_EQ(cluster.client.secret, left);
  cluster.Settle();
  EXPECT_TRUE(cluster.Reconcile("ml/clicks").status.ok());
  EXPECT_NE(SecretText(cluster.client.secret, "ca.crt"), SecretText(left, "ca.crt"));
}

// Whatever two loaders have of the Secret, as it was at this look or the last, they take each other's certificate.
TEST(Reconciler, TwelveYearsOfRotationPartNoLoaders) {
  Cluster cluster;
  cluster.now = ParseTime("2026-01-01T00:00:00Z");
  cluster.Put(Numbers());
  ASSERT_TRUE(cluster.Reconcile("ml/clicks").status.ok());
  cluster.Settle();
  const auto takes = [](const json& one, const json& other) {
    const TlsKeyPair pair = {SecretText(other, "tls.crt"), SecretText(other, "tls.key")};
    std::string bundle = SecretText(one, "ca.crt");
    while (!bundle.empty()) {
      if (Verifies(pair, bundle)) return true;
      const size_t next = bundle.find("-----BEGIN", 1);
      bundle = next == std::string::npos ? "" : bundle.substr(next);
    }
    return false;
  };
  std::set<std::string> authorities, certificates;
  for (int look = 0; look < 12 * 365 / 10; ++look) {
    const json before = cluster.client.secret;
    cluster.now += std::chrono::hours(10 * 24);
    ASSERT_TRUE(cluster.Reconcile("ml/clicks").status.ok());
    const json& now = cluster.client.secret;
    if (now == before) continue;
    ASSERT_TRUE(takes(now, now) && takes(now, before) && takes(before, now)) << "look " << look;
    ASSERT_GT(ReadCertificate(SecretText(before, "tls.crt"))->not_after, cluster.now + 24h);
    ASSERT_GT(ReadCertificate(SecretText(before, "ca.crt"))->not_after, cluster.now + 365 * 24h);
    authorities.insert(SecretText(now, "ca.crt"));
    certificates.insert(SecretText(now, "tls.crt"));
  }
  EXPECT_EQ(authorities.size(), 4u) << "12 years in steps of two thirds of 5, and the first";
  EXPECT_GT(certificates.size(), 12u * 365 / 90);
}

TEST(Reconciler, KeysThatCannotBeLookedAtKeepNothingElseFromBeingDone) {
  class NoSecrets : public RecordingClient {
    Result<json> GetRemembered(const kube::Resource&, const std::string&, const std::string&) override {
      return Unavailable("secrets \"clicks-headrace-peers\" is forbidden");
    }
  } client;
  Cluster cluster;
  cluster.Put(Numbers());
  cluster.Put(PlanMap(Numbers()["spec"], "2026-01-01T00:00:00Z"));  // it is not new
  PeerKeys peer_keys(&client);
  const Reconciler reconciler({&client, &cluster.inputs, &cluster.pods, &cluster.config_maps, &cluster.services,
                               &cluster.jobs, &cluster.stateful_sets, &cluster.events, &peer_keys,
                               &cluster.own_writes});
  EXPECT_EQ(reconciler.Reconcile("ml/clicks").status.message(), "secrets \"clicks-headrace-peers\" is forbidden");
  EXPECT_EQ(client.statuses.size(), 1u);
}

// A new leader, whose API server has not heard yet of the Secret that the last one made or renewed: it writes nothing
// of its own over it.
TEST(Reconciler, KeysThatAreNewerThanTheLookStay) {
  Cluster cluster;
  cluster.now = ParseTime("2026-01-01T00:00:00Z");
  cluster.Put(Numbers());
  ASSERT_TRUE(cluster.Reconcile("ml/clicks").status.ok());
  cluster.Settle();
  const json made = cluster.client.secret;
  json spoilt = made;
  spoilt["metadata"]["resourceVersion"] = "0";
  spoilt["data"]["tls.crt"] = "";
  for (const Result<json>& behind : {Result<json>(NotFound("no such Secret")), Result<json>(spoilt)}) {
    PeerKeys of_new_leader(&cluster.client);
    OwnWrites own_writes;
    const Reconciler reconciler({&cluster.client, &cluster.inputs, &cluster.pods, &cluster.config_maps,
                                 &cluster.services, &cluster.jobs, &cluster.stateful_sets, &cluster.events,
                                 &of_new_leader, &own_writes, [&] { return cluster.now; }});
    cluster.client.remembered = behind;
    EXPECT_EQ(reconciler.Reconcile("ml/clicks").status.code(), Code::kConflict);
    EXPECT_EQ(cluster.client.secret, made);
    cluster.client.remembered.reset();
    EXPECT_TRUE(reconciler.Reconcile("ml/clicks").status.ok());
    EXPECT_EQ(cluster.client.secret, made);
  }
}

// Status, events and the objects of others never hold what a Secret holds.
TEST(Reconciler, KeysStayInTheSecret) {
  Cluster cluster;
  cluster.Put(Numbers());
  ASSERT_TRUE(cluster.Reconcile("ml/clicks").status.ok());
  const json& data = cluster.client.secret.at("data");
  ASSERT_EQ(data.size(), 4u);
  std::string written = json(cluster.client.applied).dump() + json(cluster.client.statuses).dump();
  for (const std::string& event : cluster.events.events) written += event;
  EXPECT_EQ(written.find("PRIVATE KEY"), std::string::npos);
  for (const auto& [key, value] : data.items()) {
    EXPECT_EQ(written.find(value.get<std::string>().substr(0, 40)), std::string::npos) << key;
  }
}

}  // namespace
}  // namespace headrace::op
