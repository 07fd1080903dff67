// Quantities, and the operator's defaults. What an input and its plan say is in cases/resources_*.yaml.
#include "operator/admission/loader_resources.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace headrace::op {
namespace {

using nlohmann::json;

TEST(QuantityBytes, ReadsWhatKubernetesWrites) {
  const std::pair<json, int64_t> cases[] = {{1000, 1000},
                                            {"1000", 1000},
                                            {"1k", 1000},
                                            {"1Ki", 1024},
                                            {"512Mi", 512 << 20},
                                            {"1.5Gi", 3 << 29},
                                            {"1.5G", 1500000000},
                                            {"1e9", 1000000000},
                                            {"1E3", 1000},
                                            {"100m", 1},
                                            {"2Ti", int64_t{2} << 40},
                                            {"0", 0}};
  for (const auto& [quantity, bytes] : cases) {
    const Result<int64_t> read = QuantityBytes(quantity);
    ASSERT_TRUE(read.ok()) << quantity << ": " << read.status().ToString();
    EXPECT_EQ(*read, bytes) << quantity;
  }
}

TEST(QuantityBytes, RefusesWhatIsNone) {
  for (const json& quantity : {json("much"), json(""), json("5MB"), json("Mi"), json("-1Gi"), json("0x10"), json("inf"),
                               json("1 Gi"), json("1e99"), json(nullptr), json::object()}) {
    EXPECT_EQ(QuantityBytes(quantity).status().code(), Code::kInvalidArgument) << quantity;
  }
}

Plan RangePlan() {
  return CompilePlan(
      *ParseInputSpec({{"source", {{"range", {{"stop", 1 << 30}}}}}, {"pipeline", {{{"batch", {{"size", 1 << 20}}}}}}}),
      "ml/clicks");
}

TEST(LoaderResources, TheChartsDefaultsAreBesideTheRings) {
  ResourceDefaults defaults;
  defaults.cpu_limit = "8";
  defaults.memory_request_bytes = int64_t{100} << 20;
  defaults.memory_limit_bytes = int64_t{200} << 20;
  const auto resources = LoaderResources(json::object(), RangePlan(), {}, defaults);
  ASSERT_TRUE(resources.ok()) << resources.status().ToString();
  // The rings: 4 steps ahead and 2 at hand, of 2^20 numbers of 8 bytes.
  const json expected =
      json::parse(R"({"requests": {"cpu": "100m", "memory": "148Mi"}, "limits": {"cpu": "8", "memory": "248Mi"}})");
  EXPECT_EQ(*resources, expected);
}

TEST(LoaderResources, ARequestIsNeverAboveItsLimit) {
  ResourceDefaults defaults;
  defaults.memory_request_bytes = int64_t{300} << 20;
  defaults.memory_limit_bytes = int64_t{200} << 20;
  const json resources = *LoaderResources(json::object(), RangePlan(), {}, defaults);
  EXPECT_EQ(resources["requests"]["memory"], "248Mi");
  EXPECT_EQ(resources["limits"]["memory"], "248Mi");
}

// Each of two workers holds its replicas' rings alone.
TEST(LoaderResources, FollowsTheRunsSize) {
  const json resources = *LoaderResources(json::object(), RangePlan(), {2, 0, 2}, {});
  // A batch of 4 replicas: 2 MiB each; 2 rings of 8 + 2 slots: 40 MiB; the loader's own 40 MiB is less than 64.
  EXPECT_EQ(resources["requests"]["memory"], "104Mi");
}

}  // namespace
}  // namespace headrace::op
