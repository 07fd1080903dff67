// An operator's caches and what it does to a cluster, without one: for tests of reconciliation.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/net/base64.h"
#include "operator/kube/object.h"
#include "operator/pod/injected.h"
#include "operator/pod/input_key.h"
#include "operator/reconcile/reconciler.h"

namespace headrace::testing {

using nlohmann::json;

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
  // Secrets: by name alone.
  Result<json> Get(const kube::Resource& resource, const std::string& name_space, const std::string& name) override {
    EXPECT_EQ(resource.kind, "Secret");
    EXPECT_EQ(name_space + "/" + name, "ml/clicks-headrace-peers");
    ++looks;
    if (secret.is_null()) return NotFound("no such Secret");
    return secret;
  }
  Result<json> GetRemembered(const kube::Resource& resource, const std::string& name_space,
                             const std::string& name) override {
    if (remembered) return *remembered;
    return Get(resource, name_space, name);
  }
  Result<json> Create(const kube::Resource& resource, const json& object) override {
    if (!secret.is_null()) return Conflict("it exists");
    return Put(resource, object);
  }
  Result<json> Replace(const kube::Resource& resource, const json& object) override {
    EXPECT_EQ(object["metadata"]["resourceVersion"], secret["metadata"]["resourceVersion"]);
    return Put(resource, object);
  }
  Result<json> Put(const kube::Resource& resource, const json& object) {
    EXPECT_EQ(resource.kind, "Secret");
    secret = object;
    secret["metadata"]["resourceVersion"] = std::to_string(++versions);
    return secret;
  }
  json secret;
  std::optional<Result<json>> remembered;  // what an API server whose cache is behind says of it
  int versions = 0, looks = 0;
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
  kube::Store inputs, services, stateful_sets;
  kube::Store pods{op::InputKeyOf}, config_maps{op::InputKeyOf}, jobs{op::TemplateInputKeyOf};
  RecordingClient client;
  RecordingEvents events;
  op::PeerKeys peer_keys{&client};
  op::OwnWrites own_writes;
  std::chrono::system_clock::time_point now{};
  bool has_time = true;

  void Put(json object) {
    const std::string kind = object.at("kind");
    kube::Store& store = kind == "DistributedInput" ? inputs
                         : kind == "ConfigMap"      ? config_maps
                         : kind == "Service"        ? services
                         : kind == "Job"            ? jobs
                         : kind == "StatefulSet"    ? stateful_sets
                                                    : pods;
    if (kind == "Pod") op::SlimPod(object);  // as the informer does
    store.Put(std::make_shared<const json>(std::move(object)));
  }
  // The caches show the objects that were written.
  void Settle() {
    for (const json& object : client.applied) Put(object);
  }
  kube::Outcome Reconcile(const std::string& key) {
    return op::Reconciler({&client, &inputs, &pods, &config_maps, &services, &jobs, &stateful_sets, &events, &peer_keys,
                           &own_writes, [this] { return now; }, [this](const std::string&) { return has_time; }})
        .Reconcile(key);
  }
};

inline std::chrono::system_clock::time_point ParseTime(const std::string& text) {
  std::tm utc{};
  EXPECT_NE(strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &utc), nullptr) << text;
  return std::chrono::system_clock::from_time_t(timegm(&utc));
}

inline std::string SecretText(const json& secret, const char* key) {
  return DecodeBase64(kube::StringAt(secret, {"data", key})).value_or("");
}

// The input "clicks", all of it valid.
inline json Numbers() {
  return {{"kind", "DistributedInput"},
          {"metadata", {{"name", "clicks"}, {"namespace", "ml"}, {"uid", "input-1"}, {"generation", 1}}},
          {"spec", {{"source", {{"range", {{"stop", 10}}}}}}}};
}

}  // namespace headrace::testing
