// Each file in cases/ holds objects that the caches have, a pod that is created, and what the webhook must answer: a
// refusal, or the pod as it is once the patch is applied. Every case is also run twice: a second review changes
// nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/spec/names.h"
#include "common/spec/object_names.h"
#include "operator/admission/reinjection.h"
#include "operator/admission/server.h"
#include "operator/pod/input_key.h"
#include "tests/operator/yaml_case.h"

namespace headrace::op {
namespace {

using nlohmann::json;
using testing::LoadYaml;
using testing::Missing;
using testing::Substitute;

std::string DecodeBase64(const std::string& text) {
  constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t group = 0;
  int bits = 0;
  for (const char c : text) {
    if (c == '=') break;
    group = group << 6 | static_cast<uint32_t>(kAlphabet.find(c));
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes += static_cast<char>(group >> bits & 255);
    }
  }
  return bytes;
}

class Webhook {
 public:
  explicit Webhook(const json& objects) {
    for (const json& object : objects) {
      const std::string kind = object.at("kind");
      kube::Store& store = kind == "DistributedInput" ? inputs_
                           : kind == "Job"            ? jobs_
                           : kind == "StatefulSet"    ? stateful_sets_
                           : kind == "ConfigMap"      ? config_maps_
                                                      : pods_;
      store.Put(std::make_shared<const json>(object));
    }
    AdmissionDeps deps;
    deps.inputs = &inputs_;
    deps.jobs = &jobs_;
    deps.stateful_sets = &stateful_sets_;
    deps.pods = &pods_;
    deps.config_maps = &config_maps_;
    deps.loader.image = "registry.example/loader:1";
    deps.loader.image_pull_policy = "IfNotPresent";
    deps.input_wait = std::chrono::milliseconds(0);
    deps.owner_wait = std::chrono::milliseconds(0);
    deps.on_review = [this](std::string_view result, std::string_view reason) {
      counted_ = std::string(result) + " " + std::string(reason);
    };
    handler_ = MakeAdmissionHandler(std::move(deps));
  }

  // The response of a review of the creation of `pod`.
  json Review(const json& pod, const std::string& name_space, bool dry_run = false) {
    const json review = {{"apiVersion", "admission.k8s.io/v1"},
                         {"kind", "AdmissionReview"},
                         {"request",
                          {{"uid", "review-1"},
                           {"operation", "CREATE"},
                           {"namespace", name_space},
                           {"dryRun", dry_run},
                           {"resource", {{"group", ""}, {"version", "v1"}, {"resource", "pods"}}},
                           {"object", pod}}}};
    const HttpResponse response = handler_({"POST", kInjectPath, "", review.dump()});
    EXPECT_EQ(response.status, 200);
    const json answer = json::parse(response.body);
    EXPECT_EQ(answer.at("apiVersion"), "admission.k8s.io/v1");
    EXPECT_EQ(answer.at("kind"), "AdmissionReview");
    EXPECT_EQ(answer.at("response").at("uid"), "review-1");
    return answer.at("response");
  }
  const std::string& counted() const { return counted_; }

 private:
  kube::Store inputs_, jobs_, stateful_sets_, config_maps_{InputKeyOf}, pods_{InputKeyOf};
  HttpHandler handler_;
  std::string counted_;
};

// What of `pod` is not in `patched`, apart from what lists have gained: the patch may only add.
void ExpectKept(const json& pod, const json& patched, const std::string& path) {
  if (pod.is_object()) {
    for (const auto& [key, value] : pod.items()) {
      ASSERT_TRUE(patched.contains(key)) << path << "/" << key;
      ExpectKept(value, patched.at(key), path + "/" + key);
    }
  } else if (pod.is_array()) {
    auto at = patched.begin();
    for (const json& entry : pod) {  // in their order
      const bool named = entry.is_object() && entry.contains("name");
      at = std::find_if(at, patched.end(), [&](const json& other) {
        return named ? other.value("name", "") == entry["name"] : other == entry;
      });
      ASSERT_NE(at, patched.end()) << path << " lost " << entry;
      ExpectKept(entry, *at, path);
      ++at;
    }
  } else {
    EXPECT_EQ(pod, patched) << path;
  }
}

class InjectCase : public ::testing::TestWithParam<std::string> {};

TEST_P(InjectCase, Answers) {
  json given = LoadYaml(GetParam());
  // {{HASH}} stands for the plan of the first input, {{OLD_HASH}} for that of `old_spec`.
  for (const json& object : given.at("objects")) {
    if (object.at("kind") != "DistributedInput") continue;
    const auto spec = ParseInputSpec(object.at("spec"));
    if (spec.ok()) given = Substitute(given, "{{HASH}}", CompilePlan(*spec, "").hash);
    break;
  }
  if (given.contains("old_spec")) {
    const Plan old = CompilePlan(*ParseInputSpec(given["old_spec"]), "ml/clicks");
    given = Substitute(given, "{{OLD_HASH}}", old.hash);
    given["objects"].push_back({{"kind", "ConfigMap"},
                                {"metadata",
                                 {{"name", names::PlanConfigMapName("clicks", old.hash)},
                                  {"namespace", "ml"},
                                  {"labels", {{names::kInputLabel, "clicks"}}}}},
                                {"data", {{names::kPlanFile, ToJson(old).dump()}}}});
  }
  Webhook webhook(given.at("objects"));
  const json& pod = given.at("pod");
  const json& expect = given.at("expect");
  const std::string name_space = given.value("namespace", "ml");
  const json dry = webhook.Review(pod, name_space, /*dry_run=*/true);
  const json response = webhook.Review(pod, name_space);
  EXPECT_EQ(dry, response) << "a dry run is answered like any other request, and leaves nothing behind";
  EXPECT_EQ(webhook.counted(), expect.at("counted").get<std::string>());
  if (expect.contains("denied")) {
    ASSERT_EQ(response.at("allowed"), false);
    EXPECT_EQ(Missing(expect["denied"], response.at("status").at("message")), "");
    return;
  }
  ASSERT_EQ(response.at("allowed"), true) << response;
  if (expect.contains("unchanged")) {
    EXPECT_FALSE(response.contains("patch")) << response;
    return;
  }
  ASSERT_EQ(response.at("patchType"), "JSONPatch");
  const json patched = pod.patch(json::parse(DecodeBase64(response.at("patch"))));
  EXPECT_EQ(Missing(expect.at("pod"), patched), "") << patched.dump(2);
  if (!IsInjected(pod)) ExpectKept(pod, patched, "");  // what was ours is made anew
  EXPECT_EQ(Missing(expect.value("warnings", json::array()), response.value("warnings", json::array())), "");

  const json again = webhook.Review(patched, name_space);
  EXPECT_EQ(again.at("allowed"), true);
  EXPECT_FALSE(again.contains("patch"));
}

INSTANTIATE_TEST_SUITE_P(Cases, InjectCase,
                         ::testing::ValuesIn(testing::CaseFiles(HEADRACE_SOURCE_DIR "/tests/operator/admission/cases")),
                         [](const auto& param) { return testing::CaseName(param.param); });

}  // namespace
}  // namespace headrace::op
