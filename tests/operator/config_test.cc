#include "operator/config.h"

#include <gtest/gtest.h>

namespace headrace::op {
namespace {

TEST(ConfigTest, ReadsFlagsAndKeepsDefaults) {
  const Result<Config> config = ParseConfig({"--loader-image=registry/loader:1=2", "--workers=8", "--metrics-port=0",
                                             "--identity=pod-1", "--lease=", "--drain-seconds=0"});
  ASSERT_TRUE(config.ok()) << config.status().ToString();
  EXPECT_EQ(config->loader.image, "registry/loader:1=2");
  EXPECT_EQ(config->workers, 8);
  EXPECT_EQ(config->metrics_port, 0);
  EXPECT_EQ(config->lease, "");
  EXPECT_EQ(config->drain.count(), 0);
  EXPECT_EQ(config->webhook_port, 9443);
  EXPECT_EQ(config->secure_metrics_port, 0) << "as charts before it expect";
  EXPECT_EQ(config->loader.resources.cpu_request, "100m");
  EXPECT_EQ(config->loader.resources.memory_request_bytes, 64 << 20);
  EXPECT_EQ(config->loader.resources.memory_limit_bytes, std::nullopt);
  EXPECT_EQ(config->loader.run_as_user, 65532);
  EXPECT_EQ(config->loader.image_pull_policy, "IfNotPresent");
}

TEST(ConfigTest, ReadsWhatLoadersMayTake) {
  const Result<Config> config = ParseConfig(
      {"--loader-image=a", "--identity=b", "--loader-cpu-request=0.5", "--loader-cpu-limit=2",
       "--loader-memory-request=1Gi", "--loader-memory-limit=1.5G", "--loader-run-as-user=1000", "--ring-volume=2Gi"});
  ASSERT_TRUE(config.ok()) << config.status().ToString();
  EXPECT_EQ(config->loader.resources.cpu_request, "0.5");
  EXPECT_EQ(config->loader.resources.cpu_limit, "2");
  EXPECT_EQ(config->loader.resources.memory_request_bytes, int64_t{1} << 30);
  EXPECT_EQ(config->loader.resources.memory_limit_bytes, 1'500'000'000);
  EXPECT_EQ(config->loader.run_as_user, 1000);
  EXPECT_EQ(config->loader.run_volume_bytes, int64_t{2} << 30);
}

TEST(ConfigTest, ErrorsNameTheFlagTheValueAndWhatIsAllowed) {
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{}, "--loader-image: required"},
      {{"--loader-image"}, "'--loader-image': expected --name=value"},
      {{"serve"}, "'serve'"},
      {{"--loader-image=a", "--loader-imgae=b"}, "--loader-imgae: not known"},
      {{"--loader-image=a", "--workers=0"}, "--workers: '0' is not a number from 1 to 64"},
      {{"--loader-image=a", "--workers=4x"}, "'4x'"},
      {{"--loader-image=a", "--workers="}, "''"},
      {{"--loader-image=a", "--webhook-port=65536"}, "from 0 to 65535"},
      {{"--loader-image=a", "--image-pull-policy=always"}, "'always' is none of Always, IfNotPresent, Never"},
      {{"--loader-image=a", "--identity="}, "--identity"},
      {{"--loader-image=a", "--loader-run-as-user=0"}, "--loader-run-as-user: '0' is not a number from 1"},
      {{"--loader-image=a", "--loader-memory-limit=lots"}, "--loader-memory-limit: \"lots\" is no quantity"},
      {{"--loader-image=a", "--loader-cpu-limit=2x"}, "--loader-cpu-limit: '2x' is no number of CPUs"},
  };
  for (const auto& [arguments, expected] : cases) {
    const Status status = ParseConfig(arguments).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << expected;
    EXPECT_NE(status.message().find(expected), std::string::npos) << status.message() << " should hold " << expected;
  }
}

}  // namespace
}  // namespace headrace::op
