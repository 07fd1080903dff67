#include "common/spec/collective.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace headrace {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

json Files(const json& collective, const std::string& policy = "Off") {
  return {{"source", {{"files", {{"paths", {"a"}}}}}},
          {"pipeline", {{{"batch", {{"size", 8}}}}}},
          {"distribution", {{"autoShardPolicy", policy}, {"collective", collective}}},
          {"delivery", {{"memory", "Device"}}}};
}

Plan PlanOf(const json& spec) {
  auto parsed = ParseInputSpec(spec);
  EXPECT_TRUE(parsed.ok()) << parsed.status().ToString();
  return CompilePlan(std::move(*parsed), "ml/clicks");
}

TEST(Collective, DefaultsAreThoseOfNotSayingAnything) {
  json spec = Files(json::object());
  const Plan plan = PlanOf(spec);
  EXPECT_EQ(WhatIsExchanged(plan), Exchanged::kNothing);
  EXPECT_EQ(ExchangeReason(plan), "");
  spec["distribution"].erase("collective");
  EXPECT_EQ(PlanOf(spec).hash, plan.hash);
}

TEST(Collective, SaysWhatIsExchanged) {
  const json nccl = {{"backend", "NCCL"}};
  EXPECT_EQ(WhatIsExchanged(PlanOf(Files(nccl, "Off"))), Exchanged::kSame);
  EXPECT_EQ(WhatIsExchanged(PlanOf(Files(nccl, "Data"))), Exchanged::kParts);
  const Plan plan = PlanOf(Files({{"backend", "NCCL"}, {"onError", "Fail"}, {"timeoutSeconds", 7}}));
  EXPECT_FALSE(plan.spec.distribution.collective.falls_back);
  EXPECT_EQ(plan.spec.distribution.collective.timeout_seconds, 7);
  EXPECT_TRUE(plan.warnings.empty() || plan.warnings[0].find("NCCL") == std::string::npos);
}

TEST(Collective, SaysWhyNothingIs) {
  const json nccl = {{"backend", "NCCL"}};
  const auto expect = [](const json& spec, const std::string& why) {
    const Plan plan = PlanOf(spec);
    EXPECT_EQ(WhatIsExchanged(plan), Exchanged::kNothing);
    EXPECT_THAT(ExchangeReason(plan), HasSubstr(why));
    EXPECT_THAT(plan.warnings, ::testing::Contains(HasSubstr("spec.distribution.collective.backend: NCCL")));
  };
  expect(Files(nccl, "File"), "under policy File");
  json spec = Files(nccl);
  spec["distribution"]["rebatch"] = "Continuous";
  expect(spec, "rebatch Continuous");
  spec = Files(nccl);
  spec["distribution"]["strategy"] = "ParameterServer";
  expect(spec, "ParameterServer");
  spec = Files(nccl);
  spec["source"] = {{"range", {{"stop", 9}}}};
  expect(spec, "spec.source.range");
}

TEST(Collective, ErrorsNameTheField) {
  const auto expect = [](const json& spec, const std::string& error) {
    EXPECT_THAT(ParseInputSpec(spec).status().message(), HasSubstr(error));
  };
  expect(Files({{"backend", "NCLL"}}), "spec.distribution.collective.backend");
  expect(Files({{"onError", "Fail"}}), "spec.distribution.collective.onError: goes with backend NCCL");
  expect(Files({{"backend", "NCCL"}, {"timeoutSeconds", 0}}), "spec.distribution.collective.timeoutSeconds");
  json spec = Files({{"backend", "NCCL"}});
  spec["delivery"]["memory"] = "Pinned";
  expect(spec, "spec.distribution.collective.backend: NCCL needs loaders that hold a GPU");
}

}  // namespace
}  // namespace headrace
