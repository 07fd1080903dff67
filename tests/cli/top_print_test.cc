#include "cli/top_print.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headrace::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Rate, IsShort) {
  EXPECT_EQ(Rate(0), "0");
  EXPECT_EQ(Rate(2.25), "2.2");
  EXPECT_EQ(Rate(999), "999");
  EXPECT_EQ(Rate(1234567), "1,234,567");
  EXPECT_EQ(Megabytes(12.34e6), "12.3");
}

std::string Metrics(int seconds) {
  const auto count = [&](const std::string& series, double a_second) {
    return "headrace_loader_" + series + " " + std::to_string(a_second * seconds) + "\n";
  };
  return count("records_total{replica=\"0\"}", 12000) + count("records_total{replica=\"1\"}", 11000) +
         count("batches_total{replica=\"0\"}", 12) + count("batches_total{replica=\"1\"}", 11) +
         count("bytes_total{replica=\"0\"}", 2e6) + count("bytes_total{replica=\"1\"}", 1e6) +
         count("trainer_wait_seconds_total{replica=\"0\"}", 0.25) +
         count("trainer_wait_seconds_total{replica=\"1\"}", 0.5) + count("bytes_read_total", 5e6) +
         count("stage_seconds_total{stage=\"read\",state=\"busy\"}", 1) +
         count("stage_seconds_total{stage=\"decode\",state=\"busy\"}", 0.75) +
         count("stage_seconds_total{stage=\"decode\",state=\"blocked_on_input\"}", 0.5) +
         "headrace_loader_decode_threads 2\nheadrace_loader_ring_batches{replica=\"0\"} 3\n"
         "headrace_loader_ring_slots{replica=\"0\"} 10\nheadrace_loader_ring_slots{replica=\"1\"} 10\n"
         "headrace_loader_info{input=\"ml/clicks\"} 1\n";
}

LoaderView View(const std::string& name) {
  return {name, {}, RatesBetween(*ParseLoaderMetrics(Metrics(10)), *ParseLoaderMetrics(Metrics(14)), 4)};
}

TEST(Top, ShowsTwoScrapesOfOneLoader) {
  EXPECT_EQ(PrintTop({View("10.0.0.7")}),
            "WORKER    REPLICA  RECORDS/s  MB/s  READ MB/s  RING  TRAINER WAITS  READ BUSY  DECODE BUSY\n"
            "10.0.0.7        0     12,000   2.0        5.0  3/10           25 %      100 %     0.8 of 2\n"
            "                1     11,000   1.0             0/10           50 %\n"
            "  -> replica 1's trainer waits 50 % of the time: reading is the limit (1 thread, 100 % busy)\n");
}

TEST(Top, SumsARunAndSaysWhoDoesNotAnswer) {
  const std::string text =
      PrintTop({View("worker-0"), View("worker-1"), {"worker-2", Unavailable("Connection refused"), {}}});
  EXPECT_THAT(text, HasSubstr("\nworker-2\n  -> Connection refused\nall "));
  EXPECT_THAT(text, HasSubstr("46,000   6.0       10.0\n"));
}

TEST(Top, PassesNoControlCharactersToTheTerminal) {
  EXPECT_THAT(PrintTop({{"a\x1b[2J", Unavailable("b\x1b[2J"), {}}}), Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace headrace::cli
