#include "operator/config.h"

#include <gtest/gtest.h>

namespace headrace::op {
namespace {

TEST(ConfigTest, ReadsFlagsAndKeepsDefaults) {
  const Result<Config> config = ParseConfig({"--loader-image=registry/loader:1=2", "--workers=8", "--metrics-port=0",
                                             "--identity=pod-1", "--lease=", "--drain-seconds=0"});
  ASSERT_TRUE(config.ok()) << config.status().ToString();
  EXPECT_EQ(config->loader_image, "registry/loader:1=2");
  EXPECT_EQ(config->workers, 8);
  EXPECT_EQ(config->metrics_port, 0);
  EXPECT_EQ(config->lease, "");
  EXPECT_EQ(config->drain.count(), 0);
  EXPECT_EQ(config->webhook_port, 9443);
  EXPECT_EQ(config->image_pull_policy, "IfNotPresent");
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
  };
  for (const auto& [arguments, expected] : cases) {
    const Status status = ParseConfig(arguments).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << expected;
    EXPECT_NE(status.message().find(expected), std::string::npos) << status.message() << " should hold " << expected;
  }
}

}  // namespace
}  // namespace headrace::op
