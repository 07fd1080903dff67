#include "cli/scrape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cli/process.h"
#include "common/net/http_server.h"

namespace headrace::cli {
namespace {

using testing::HasSubstr;

TEST(MetricsAddress, HasPortAndPathOfPodsByDefault) {
  for (const auto& [text, host, port, path] : std::vector<std::tuple<std::string, std::string, int, std::string>>{
           {"10.0.0.7", "10.0.0.7", 9464, "/metrics"},
           {"localhost:80", "localhost", 80, "/metrics"},
           {"http://pod.example:1234/m/x", "pod.example", 1234, "/m/x"},
           {"[::1]", "::1", 9464, "/metrics"},
           {"http://[::1]:65535/m", "::1", 65535, "/m"}}) {
    const auto address = ParseMetricsAddress(text);
    ASSERT_TRUE(address.ok()) << address.status().message();
    EXPECT_EQ(address->name, text);
    EXPECT_EQ(address->host, host);
    EXPECT_EQ(address->port, port);
    EXPECT_EQ(address->path, path);
  }
}

TEST(MetricsAddress, RefusesWhatIsNone) {
  EXPECT_THAT(ParseMetricsAddress("").status().message(), HasSubstr("there is no host"));
  EXPECT_THAT(ParseMetricsAddress("a:b").status().message(), HasSubstr("\"a:b\": \"b\" is no port"));
  EXPECT_THAT(ParseMetricsAddress("a:65536").status().message(), HasSubstr("no port"));
  EXPECT_THAT(ParseMetricsAddress("a:0").status().message(), HasSubstr("no port"));
  EXPECT_THAT(ParseMetricsAddress("::1").status().message(), HasSubstr("stands in brackets"));
  EXPECT_THAT(ParseMetricsAddress("[::1").status().message(), HasSubstr("bracket is not closed"));
  EXPECT_THAT(ParseMetricsAddress("https://localhost").status().message(), HasSubstr("plain http"));
}

TEST(LoadersOf, FindsOneLoaderOrARun) {
  const ScratchDirectory directory = std::move(ScratchDirectory::Make("headrace-test-")).value();
  EXPECT_THAT(LoadersOf(directory.path()).status().message(), HasSubstr("no loader serves metrics there"));
  for (const std::string worker : {"worker-0", "worker-1"}) {
    std::filesystem::create_directory(directory.path() + "/" + worker);
    std::ofstream(directory.path() + "/" + worker + "/metrics.addr") << "127.0.0.1:1" << worker.back() << "\n";
  }
  const auto run = LoadersOf(directory.path());
  ASSERT_TRUE(run.ok()) << run.status().message();
  ASSERT_EQ(run->size(), 2u);
  EXPECT_EQ((*run)[1].name, "worker-1");
  EXPECT_EQ((*run)[1].port, 11);
  const auto one = LoadersOf(directory.path() + "/worker-0");
  ASSERT_TRUE(one.ok()) << one.status().message();
  ASSERT_EQ(one->size(), 1u);
  EXPECT_EQ((*one)[0].port, 10);
}

TEST(ScrapeAll, TellsLoadersFromOthersAndFromNobody) {
  HttpServerOptions options;
  options.address = "127.0.0.1";
  const auto server = HttpServer::Start(options, [](const HttpRequest& request) -> HttpResponse {
    if (request.path == "/metrics") return {200, "text/plain", "headrace_loader_info{input=\"ml/a\"} 1\n"};
    if (request.path == "/other") return {200, "text/plain", "up 1\n"};
    return {404, "text/plain", ""};
  });
  ASSERT_TRUE(server.ok()) << server.status().message();
  const uint16_t port = (*server)->port();
  // Nobody listens on port 1, which only root may.
  const auto scrapes = ScrapeAll({{"a", "127.0.0.1", port, "/metrics"},
                                  {"b", "127.0.0.1", port, "/other"},
                                  {"c", "127.0.0.1", port, "/none"},
                                  {"d", "127.0.0.1", 1, "/metrics"}});
  ASSERT_TRUE(scrapes[0].status.ok()) << scrapes[0].status.message();
  EXPECT_EQ(scrapes[0].sample.input, "ml/a");
  EXPECT_THAT(scrapes[1].status.message(), HasSubstr("not a loader's metrics"));
  EXPECT_THAT(scrapes[2].status.message(), HasSubstr("/none: it answers with status 404"));
  EXPECT_EQ(scrapes[3].status.code(), Code::kUnavailable);
}

}  // namespace
}  // namespace headrace::cli
