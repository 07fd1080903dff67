#include "cli/input_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cli/process.h"

namespace headrace::cli {
namespace {

using ::testing::HasSubstr;

constexpr char kInput[] = R"(apiVersion: headrace.dev/v1alpha1
kind: DistributedInput
metadata: {name: numbers}
spec:
  source: {range: {stop: 8}}
  pipeline:
  - batch: {size: 4}
)";

class InputFileTest : public testing::Test {
 protected:
  InputFileTest() : directory_(std::move(ScratchDirectory::Make("headrace-test-")).value()) {}

  Result<LocalInput> Load(const std::string& text, const std::string& name = "") {
    std::ofstream(path()) << text;
    return LoadInput(path(), name);
  }
  std::string Error(const std::string& text, const std::string& name = "") {
    const auto input = Load(text, name);
    return input.ok() ? "no error" : input.status().message();
  }
  std::string path() const { return directory_.path() + "/f.yaml"; }

  ScratchDirectory directory_;
};

TEST_F(InputFileTest, CompilesThePlan) {
  const auto input = Load(kInput);
  ASSERT_TRUE(input.ok()) << input.status().ToString();
  EXPECT_EQ(input->name, "numbers");
  EXPECT_EQ(input->data_directory, directory_.path());
  EXPECT_EQ(input->plan.effective_policy, AutoShardPolicy::kData);
}

TEST_F(InputFileTest, PassesOverOtherObjects) {
  EXPECT_TRUE(Load("apiVersion: v1\nkind: ConfigMap\n---\n" + std::string(kInput)).ok());
}

TEST_F(InputFileTest, SeveralInputsNeedAName) {
  std::string other = kInput;
  other.replace(other.find("numbers"), 7, "others!");
  const std::string both = std::string(kInput) + "---\n" + other;
  EXPECT_THAT(Error(both), HasSubstr("2 inputs (numbers, others!): choose one with --input"));
  EXPECT_EQ(Load(both, "others!")->name, "others!");
  EXPECT_THAT(Error(both, "x"), HasSubstr("no DistributedInput named \"x\""));
}

TEST_F(InputFileTest, EveryErrorOfTheSpecWithItsPlace) {
  std::string bad = kInput;
  bad.replace(bad.find("stop"), 4, "stpo");
  bad.replace(bad.find("size: 4"), 7, "size: 0");
  const std::string error = Error(bad);
  EXPECT_THAT(error, HasSubstr(path() + ":5:20: spec.source.range"));
  EXPECT_THAT(error, HasSubstr("\"stop\""));
  EXPECT_THAT(error, HasSubstr("\n" + path() + ":7:13: spec.pipeline[0].batch.size"));
}

TEST_F(InputFileTest, TyposInTheEnvelope) {
  std::string bad = kInput;
  bad.replace(bad.find("DistributedInput"), 16, "DistributedInptu");
  EXPECT_THAT(Error(bad),
              HasSubstr("f.yaml:2:1: kind \"DistributedInptu\" is not known: did you mean DistributedInput?"));
  bad = kInput;
  bad.replace(bad.find("v1alpha1"), 8, "v1");
  EXPECT_THAT(Error(bad), HasSubstr("this command reads headrace.dev/v1alpha1"));
  bad = kInput;
  bad.replace(bad.find("spec:"), 5, "sepc:");
  EXPECT_THAT(Error(bad), HasSubstr("f.yaml:4:1: unknown field \"sepc\": did you mean \"spec\"?"));
}

TEST_F(InputFileTest, TheExampleCompiles) {
  const auto input = LoadInput(HEADRACE_SOURCE_DIR "/examples/digits/input.yaml", "");
  ASSERT_TRUE(input.ok()) << input.status().ToString();
  EXPECT_EQ(input->plan.effective_policy, AutoShardPolicy::kFile);
}

}  // namespace
}  // namespace headrace::cli
