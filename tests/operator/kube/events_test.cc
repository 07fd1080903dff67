#include "operator/kube/events.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <vector>

#include "operator/kube/object.h"
#include "tests/fakes/api.h"

namespace headrace::kube {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

const json kInput = {{"apiVersion", "headrace.dev/v1alpha1"},
                     {"kind", "DistributedInput"},
                     {"metadata", {{"namespace", "ml"}, {"name", "clicks"}, {"uid", "u1"}}}};

// The one Event there is.
json OnlyEvent(const FakeApi& api) {
  FakeApi& mutable_api = const_cast<FakeApi&>(api);
  Client client(&mutable_api, {});
  const auto listing = client.List(kEvents, "", "");
  EXPECT_EQ(listing->items.size(), 1u);
  return listing->items.empty() ? json() : listing->items[0];
}

class EventsTest : public ::testing::Test {
 protected:
  EventsTest() {
    options_.reporting_instance = "operator-0";
    options_.now = [this] { return std::chrono::system_clock::time_point(std::chrono::microseconds(now_us_)); };
  }
  FakeApi api_;
  Client client_{&api_, {}};
  ApiEventRecorder::Options options_;
  std::atomic<int64_t> now_us_ = 1'800'000'000'123'456;
};

TEST(MicroTimeTest, WritesSixDigits) {
  EXPECT_EQ(MicroTime(std::chrono::system_clock::time_point(1'800'000'000'000'007us)), "2027-01-15T08:00:00.000007Z");
}

TEST_F(EventsTest, WritesWhatTheApiDemands) {
  {
    ApiEventRecorder recorder(&client_, options_);
    recorder.Record(kInput, EventType::kWarning, "InvalidSpec", "Compile", "spec.pipeline: empty");
  }
  const json event = OnlyEvent(api_);
  EXPECT_EQ(event["eventTime"], "2027-01-15T08:00:00.123456Z");
  EXPECT_EQ(event["type"], "Warning");
  EXPECT_EQ(event["reason"], "InvalidSpec");
  EXPECT_EQ(event["action"], "Compile");
  EXPECT_EQ(event["note"], "spec.pipeline: empty");
  EXPECT_EQ(event["reportingController"], "headrace.dev/operator");
  EXPECT_EQ(event["reportingInstance"], "operator-0");
  EXPECT_EQ(event["regarding"]["uid"], "u1");
  EXPECT_EQ(event["regarding"]["kind"], "DistributedInput");
  EXPECT_EQ(NamespaceOf(event), "ml");
  EXPECT_EQ(NameOf(event).rfind("clicks.", 0), 0u);
}

TEST_F(EventsTest, ARepeatedEventBecomesASeries) {
  {
    ApiEventRecorder recorder(&client_, options_);
    for (int i = 0; i < 3; ++i) {
      recorder.Record(kInput, EventType::kNormal, "PlanCreated", "Compile", "same");
      now_us_ += 1'000'000;
    }
  }
  const json event = OnlyEvent(api_);
  EXPECT_EQ(event["series"]["count"], 3);
  EXPECT_EQ(event["series"]["lastObservedTime"], "2027-01-15T08:00:02.123456Z");
}

TEST_F(EventsTest, DifferentNotesAndOldSeriesAreNewEvents) {
  {
    ApiEventRecorder recorder(&client_, options_);
    recorder.Record(kInput, EventType::kNormal, "PlanCreated", "Compile", "one");
    recorder.Record(kInput, EventType::kNormal, "PlanCreated", "Compile", "two");
    now_us_ += 7 * 60 * 1'000'000;
    recorder.Record(kInput, EventType::kNormal, "PlanCreated", "Compile", "one");
  }
  EXPECT_EQ(api_.Count(kEvents), 3u);
}

TEST_F(EventsTest, OfManyEventsTheOldestAreForgotten) {
  options_.series_limit = 2;
  {
    ApiEventRecorder recorder(&client_, options_);
    // "one" goes on while "two" does not, so that "two" makes room for "three".
    for (const char* note : {"one", "two", "one", "three", "one", "two"}) {
      recorder.Record(kInput, EventType::kNormal, "PlanCreated", "Compile", note);
      now_us_ += 1'000'000;
    }
  }
  std::map<std::string, std::vector<int>> counts;
  const auto listing = client_.List(kEvents, "", "");
  for (const json& event : listing->items) {
    counts[event["note"]].push_back(event.value("/series/count"_json_pointer, 1));
  }
  EXPECT_EQ(counts, (std::map<std::string, std::vector<int>>{{"one", {3}}, {"two", {1, 1}}, {"three", {1}}}));
}

TEST_F(EventsTest, AnEventThatWasDeletedIsMadeAnew) {
  ApiEventRecorder recorder(&client_, options_);
  recorder.Record(kInput, EventType::kNormal, "PlanCreated", "Compile", "one");
  ASSERT_TRUE(api_.WaitUntil([&] { return api_.Count(kEvents) == 1; }));
  api_.Remove(kEvents, "ml", NameOf(OnlyEvent(api_)));
  now_us_ += 1'000'000;
  recorder.Record(kInput, EventType::kNormal, "PlanCreated", "Compile", "one");
  EXPECT_TRUE(api_.WaitUntil([&] { return api_.Count(kEvents) == 1; }));
}

TEST_F(EventsTest, NeverBlocksAndDropsWhenFull) {
  // The sender is held inside its first call, so the queue fills.
  std::mutex gate;
  std::unique_lock closed(gate);
  std::atomic<int> entered = 0;
  Client slow(&api_, {.on_request = [&](auto, auto, double) {
    ++entered;
    entered.notify_all();
    const std::lock_guard pass(gate);
  }});
  std::atomic<int> dropped = 0;
  options_.queue_limit = 5;
  options_.on_drop = [&] { ++dropped; };
  ApiEventRecorder recorder(&slow, options_);
  recorder.Record(kInput, EventType::kNormal, "R", "A", "first");
  entered.wait(0);
  for (int i = 0; i < 20; ++i) recorder.Record(kInput, EventType::kNormal, "R", "A", std::to_string(i));
  EXPECT_EQ(dropped, 15);
  closed.unlock();
}

TEST_F(EventsTest, CutsLongNotesBetweenCharacters) {
  {
    ApiEventRecorder recorder(&client_, options_);
    std::string note = "x";
    for (int i = 0; i < 600; ++i) note += "\xc3\xa9";
    recorder.Record(kInput, EventType::kNormal, "R", "A", note);
  }
  EXPECT_EQ(OnlyEvent(api_)["note"].get<std::string>().size(), 1023u);
}

}  // namespace
}  // namespace headrace::kube
