// Of a loader's text to rates. The text is in the format of Prometheus, version 0.0.4, as its specification has it.
#include "cli/loader_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headrace::cli {
namespace {

using testing::HasSubstr;

constexpr char kText[] = R"(# HELP headrace_loader_records_total Records handed to the replica.
# TYPE headrace_loader_records_total counter
headrace_loader_records_total{replica="1"} 700
headrace_loader_records_total{replica="0"} 1.5e+03
headrace_loader_bytes_read_total 4096
headrace_loader_decode_threads 3
headrace_loader_stage_seconds_total{stage="read",state="busy"} 1.25
headrace_loader_stage_seconds_total{stage="read",state="blocked_on_input"} 2.5
headrace_loader_stage_seconds_total{state="blocked_on_output",stage="decode"} 0.5 1700000000000
headrace_loader_info{input="ml/a \"b\\c, d=}",plan="x"} 1
something_else{a="b"} 9
)";

TEST(LoaderMetrics, AreReadByNameAndLabel) {
  const auto sample = ParseLoaderMetrics(kText);
  ASSERT_TRUE(sample.ok()) << sample.status().message();
  EXPECT_EQ(sample->input, "ml/a \"b\\c, d=}");
  ASSERT_EQ(sample->replicas.size(), 2u);
  EXPECT_EQ(sample->replicas[0].records, 1500);
  EXPECT_EQ(sample->replicas[1].records, 700);
  EXPECT_EQ(sample->bytes_read, 4096);
  EXPECT_EQ(sample->decode_threads, 3);
  EXPECT_EQ(sample->read.busy, 1.25);
  EXPECT_EQ(sample->read.blocked_on_input, 2.5);
  EXPECT_EQ(sample->decode.blocked_on_output, 0.5);
}

TEST(LoaderMetrics, OfAnythingElseAreRefused) {
  for (const std::string text : {"", "up 1\n", "<html>{}</html>", "a{", "a{b=\"", "a{b=\"\\"}) {
    EXPECT_THAT(ParseLoaderMetrics(text).status().message(), HasSubstr("not a loader's metrics")) << text;
  }
  const auto sample = ParseLoaderMetrics(
      "headrace_loader_records_total{replica=\"4000000000\"} 1\nheadrace_loader_info{input=\"a\"} 1\n");
  ASSERT_TRUE(sample.ok());
  EXPECT_TRUE(sample->replicas.empty());
}

TEST(Rates, AreDifferencesASecond) {
  LoaderSample before;
  before.replicas.resize(1);
  before.replicas[0].records = 100;
  before.replicas[0].ring_batches = 7;
  before.read.busy = 3;
  LoaderSample after = before;
  after.replicas[0].records = 500;
  after.replicas[0].ring_batches = 2;
  after.read.busy = 4;
  after.bytes_read = 80;
  const LoaderRates rates = RatesBetween(before, after, 4);
  EXPECT_EQ(rates.rates.replicas[0].records, 100);
  EXPECT_EQ(rates.rates.replicas[0].ring_batches, 2) << "as it is now";
  EXPECT_EQ(rates.rates.read.busy, 0.25);
  EXPECT_EQ(rates.rates.bytes_read, 20);
}

TEST(Rates, OfALoaderThatWasRestartedCountFromItsStart) {
  LoaderSample before;
  before.bytes_read = 1000;
  LoaderSample after;
  after.bytes_read = 60;
  EXPECT_EQ(RatesBetween(before, after, 2).rates.bytes_read, 30);
}

}  // namespace
}  // namespace headrace::cli
