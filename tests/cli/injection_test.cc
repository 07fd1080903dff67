#include "cli/injection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

namespace headrace::cli {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

const std::string kExample = HEADRACE_SOURCE_DIR "/examples/digits/";

Result<Injection> InjectText(const std::string& text) {
  const auto objects = ParseYaml(text, "f.yaml");
  EXPECT_TRUE(objects.ok()) << objects.status().ToString();
  return Inject(*objects, {{kExample + "input.yaml"}, "loader:1"});
}

std::string Pod(const std::string& labels) {
  return "apiVersion: v1\nkind: Pod\nmetadata: {name: p, labels: {" + labels +
         "}}\nspec: {containers: [{name: t, image: i}]}\n";
}

TEST(InjectionTest, TheExamplesJobGetsItsLoader) {
  const auto objects = ReadYamlFile(kExample + "job.yaml");
  ASSERT_TRUE(objects.ok()) << objects.status().ToString();
  const auto injection = Inject(*objects, {{kExample + "input.yaml"}, "loader:1"});
  ASSERT_TRUE(injection.ok()) << injection.status().ToString();
  EXPECT_THAT(injection->notes, ElementsAre(StartsWith("Job/digits: loader added for input digits, plan ")));
  const auto printed = ParseYaml(injection->yaml, "out");
  ASSERT_TRUE(printed.ok()) << printed.status().ToString();
  const json job = *printed->at(0).value;
  const json& pod = job["spec"]["template"]["spec"];
  ASSERT_THAT(pod["initContainers"], SizeIs(1));
  EXPECT_EQ(pod["initContainers"][0]["name"], "headrace-loader");
  EXPECT_EQ(pod["initContainers"][0]["image"], "loader:1");
  EXPECT_EQ(pod["initContainers"][0]["restartPolicy"], "Always");
  EXPECT_EQ(pod["subdomain"], "digits-headrace");
  const json coordinator = {{"name", "HEADRACE_COORDINATOR"}, {"value", "digits-0.digits-headrace:9465"}};
  EXPECT_THAT(pod["initContainers"][0]["env"], ::testing::Contains(coordinator));
  // What was there stays.
  EXPECT_EQ(job["spec"]["completions"], 2);
  EXPECT_EQ(pod["containers"][0]["image"],
            (*objects->at(0).value)["spec"]["template"]["spec"]["containers"][0]["image"]);
}

TEST(InjectionTest, ASecondTimeChangesNothing) {
  const auto once = InjectText(Pod("headrace.dev/input: digits"));
  ASSERT_TRUE(once.ok()) << once.status().ToString();
  const auto twice = InjectText(once->yaml);
  ASSERT_TRUE(twice.ok()) << twice.status().ToString();
  EXPECT_EQ(twice->yaml, once->yaml);
  EXPECT_THAT(twice->notes, ElementsAre(HasSubstr("had its loader already")));
}

TEST(InjectionTest, OtherObjectsPassUnchanged) {
  const std::string other = "kind: ConfigMap\nmetadata:\n  name: c\n";
  const auto injection = InjectText(other + "---\n" + Pod("headrace.dev/input: digits"));
  ASSERT_TRUE(injection.ok()) << injection.status().ToString();
  EXPECT_THAT(injection->yaml, StartsWith(other + "---\n"));
}

TEST(InjectionTest, NotesHoldTheWarningsOfTheWebhook) {
  const std::string file = ::testing::TempDir() + "shared_claim.yaml";
  std::ofstream(file)
      << "apiVersion: headrace.dev/v1alpha1\nkind: DistributedInput\nmetadata: {name: fed}\n"
         "spec: {source: {range: {stop: 8}}, delivery: {memory: Device}}\n---\n"
         "kind: Pod\nmetadata: {name: p, labels: {headrace.dev/input: fed}}\n"
         "spec: {resourceClaims: [{name: gpu}], securityContext: {runAsUser: 7}, containers: [{name: t}]}\n";
  const auto objects = ReadYamlFile(file);
  ASSERT_TRUE(objects.ok()) << objects.status().ToString();
  const auto injection = Inject(*objects, {{file}, "loader:1"});
  ASSERT_TRUE(injection.ok()) << injection.status().ToString();
  EXPECT_THAT(injection->notes, ElementsAre(StartsWith("Pod/p: loader added for input fed, plan "),
                                            StartsWith("warning: headrace: loader and trainers share the GPUs")));
}

TEST(InjectionTest, ErrorsNameThePlaceAndTheRemedy) {
  EXPECT_THAT(InjectText(Pod("app: x")).status().message(), HasSubstr("label headrace.dev/input"));
  const Status missing = InjectText("kind: ConfigMap\n---\n" + Pod("headrace.dev/input: digist")).status();
  EXPECT_THAT(missing.message(), HasSubstr("f.yaml:3:1: "));
  EXPECT_THAT(missing.message(), HasSubstr("\"digist\""));
  EXPECT_THAT(missing.message(), HasSubstr("--inputs"));
  const Status mistyped = InjectText("kind: Pod\nspec: {containers: {name: t}}\n").status();
  EXPECT_EQ(mistyped.message(), "f.yaml:1:1: spec.containers: the value is an object: write a list of objects");
}

}  // namespace
}  // namespace headrace::cli
