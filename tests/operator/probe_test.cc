#include "operator/probe.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace headrace::op {
namespace {

class ProbeTest : public ::testing::Test {
 protected:
  ::testing::AssertionResult Shows(const std::string& line) {
    const std::string text = probe_.Render("distributedinput", queue_);
    if (("\n" + text).find("\n" + line + "\n") != std::string::npos) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << line << " is not in\n" << text;
  }
  Probe probe_;
  kube::WorkQueue queue_{probe_.Queue("distributedinput")};
};

TEST_F(ProbeTest, CountsWhatTheQueueDoes) {
  queue_.Add("a");
  queue_.Add("b");
  queue_.Add("a");
  queue_.Add("c", kube::Priority::kBacklog);
  queue_.Add("d", kube::Priority::kPutOff);
  const std::string depth = "workqueue_depth{controller=\"distributedinput\",name=\"distributedinput\",priority=";
  EXPECT_TRUE(Shows(depth + "\"0\"} 2"));
  EXPECT_TRUE(Shows(depth + "\"-100\"} 1"));
  EXPECT_TRUE(Shows(depth + "\"-200\"} 1"));
  EXPECT_TRUE(Shows("workqueue_adds_total{controller=\"distributedinput\",name=\"distributedinput\"} 4"));
  ASSERT_TRUE(queue_.TryGet());
  queue_.AddRateLimited("a");
  queue_.Done("a");
  EXPECT_TRUE(Shows(depth + "\"0\"} 1"));
  EXPECT_TRUE(Shows("workqueue_retries_total{controller=\"distributedinput\",name=\"distributedinput\"} 1"));
  EXPECT_TRUE(
      Shows("workqueue_work_duration_seconds_count{controller=\"distributedinput\",name=\"distributedinput\"} 1"));
}

TEST_F(ProbeTest, CountsReconcilesByResult) {
  const kube::ControllerProbe probe = probe_.Controller("c", 4);
  for (const char* result : {"success", "error", "terminal_error", "panic", "requeue_after"})
    probe.on_reconcile(result, 0.1);
  EXPECT_TRUE(Shows("controller_runtime_reconcile_total{controller=\"c\",result=\"success\"} 1"));
  EXPECT_TRUE(Shows("controller_runtime_reconcile_total{controller=\"c\",result=\"error\"} 3"));
  EXPECT_TRUE(Shows("controller_runtime_reconcile_errors_total{controller=\"c\"} 3"));
  EXPECT_TRUE(Shows("controller_runtime_terminal_reconcile_errors_total{controller=\"c\"} 1"));
  EXPECT_TRUE(Shows("controller_runtime_reconcile_panics_total{controller=\"c\"} 1"));
  EXPECT_TRUE(Shows("controller_runtime_max_concurrent_reconciles{controller=\"c\"} 4"));
  EXPECT_TRUE(Shows("controller_runtime_reconcile_time_seconds_bucket{controller=\"c\",le=\"0.1\"} 5"));
}

TEST_F(ProbeTest, TimesTheWebhookAndSurvivesItsExceptions) {
  const HttpHandler handler = probe_.Timed("/inject-pod", [](const HttpRequest& request) -> HttpResponse {
    if (request.path == "/throw") throw std::runtime_error("bug");
    return {.body = "fine"};
  });
  HttpRequest request;
  EXPECT_EQ(handler(request).body, "fine");
  request.path = "/throw";
  EXPECT_EQ(handler(request).status, 500);
  EXPECT_TRUE(Shows("controller_runtime_webhook_requests_total{code=\"200\",webhook=\"/inject-pod\"} 1"));
  EXPECT_TRUE(Shows("controller_runtime_webhook_requests_total{code=\"500\",webhook=\"/inject-pod\"} 1"));
  EXPECT_TRUE(Shows("controller_runtime_webhook_requests_in_flight{webhook=\"/inject-pod\"} 0"));
}

TEST_F(ProbeTest, CountsTheRest) {
  probe_.Client().on_request("GET", "404", 0.01);
  probe_.OnReview("denied", "InputNotFound");
  probe_.SetLeader("lease", true);
  probe_.OnEventDropped();
  probe_.Client().on_retry("PATCH", "429");
  probe_.OnWrite("services", true);
  probe_.OnWrite("services", false);
  probe_.SetCached("pods", 3);
  probe_.SetInputs("Ready", "False", 2);
  probe_.Informer("pods")("watch", Exhausted("gone"));
  EXPECT_TRUE(Shows("rest_client_requests_total{code=\"404\",method=\"GET\"} 1"));
  EXPECT_TRUE(Shows("headrace_webhook_injections_total{reason=\"InputNotFound\",result=\"denied\"} 1"));
  EXPECT_TRUE(Shows("rest_client_request_retries_total{code=\"429\",verb=\"PATCH\"} 1"));
  EXPECT_TRUE(Shows("headrace_operator_writes_total{resource=\"services\",result=\"written\"} 1"));
  EXPECT_TRUE(Shows("headrace_operator_writes_total{resource=\"services\",result=\"unchanged\"} 1"));
  EXPECT_TRUE(Shows("headrace_operator_cached_objects{resource=\"pods\"} 3"));
  EXPECT_TRUE(Shows("headrace_operator_inputs{condition=\"Ready\",status=\"False\"} 2"));
  EXPECT_TRUE(Shows("leader_election_master_status{name=\"lease\"} 1"));
  EXPECT_TRUE(Shows("headrace_operator_events_dropped_total 1"));
  EXPECT_TRUE(Shows("headrace_operator_informer_calls_total{resource=\"pods\",result=\"Exhausted\",verb=\"watch\"} 1"));
  EXPECT_FALSE(Shows("process_resident_memory_bytes 0"));
}

}  // namespace
}  // namespace headrace::op
