// What /metrics say, of a feed whose times are known.
#include "sidecar/loader/probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/sidecar/files.h"

namespace headrace::side {
namespace {

using testing::HasSubstr;

constexpr uint64_t kPartNs = 2'000'000;
constexpr uint64_t kStorageNs = 1'000'000;
constexpr int64_t kDeliveries = 3;

void Spin(uint64_t ns) {
  const uint64_t begin = ring::MonotonicNs();
  while (ring::MonotonicNs() - begin < ns) ring::CpuRelax();
}

// Three deliveries of one row, each of which waits for storage and is at work for a known time, and no more.
class KnownFeed : public Feed {
 public:
  Result<std::unique_ptr<FeedEpoch>> Start(const ring::Position&) override {
    return std::unique_ptr<FeedEpoch>(std::make_unique<Epoch>());
  }
  const Plan& plan() const override { return plan_; }
  const Topology& topology() const override { return topology_; }
  const std::vector<TensorSpec>& element_spec() const override { return element_spec_; }
  uint64_t max_bytes() const override { return 64; }
  bool holds_steps() const override { return false; }
  int64_t cardinality() const override { return -1; }
  uint64_t run_seed() const override { return 1; }
  uint64_t bytes_read() const override { return 4096; }
  StageTimes read_times() const override { return {1'500'000'000, 2'000'000'000, 3'250'000'000}; }
  int64_t default_prefetch_steps() const override { return 8; }

 private:
  class Epoch : public FeedEpoch {
   public:
    Result<Next> Advance(Delivery* delivery) override {
      if (next_ == kDeliveries) return Next::kNotYet;
      *delivery = {next_, 0, 1, 1, false, static_cast<uint64_t>(next_)};
      ++next_;
      return Next::kDelivery;
    }
    Result<size_t> Begin(const Delivery&, Place* place) override {
      place->extents.resize(1);
      place->extents[0] = {0, 8, 1, {1}};
      return size_t{1};
    }
    Status WritePart(const Delivery&, size_t, size_t, Place*) override {
      {
        const StorageWait wait;
        Spin(kStorageNs);
      }
      Spin(kPartNs);
      return {};
    }
    Status End(Delivery*, Place*) override { return {}; }

   private:
    int64_t next_ = 0;
  };

  const Plan plan_ = CompilePlan(std::move(*ParseInputSpec(nlohmann::json::parse(
                                     R"({"source": {"range": {"stop": 3}}, "pipeline": [{"batch": {"size": 1}}]})"))),
                                 "ml/known");
  const Topology topology_{};
  const std::vector<TensorSpec> element_spec_ = {{"", DType::kInt64, {kUnknownDim}}};
};

double ValueOf(const std::string& text, const std::string& series) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(series + " ")) return std::stod(line.substr(series.size() + 1));
  }
  ADD_FAILURE() << "no " << series << " in\n" << text;
  return -1;
}

std::string Stage(const std::string& stage, const std::string& state) {
  return "headrace_loader_stage_seconds_total{stage=\"" + stage + "\",state=\"" + state + "\"}";
}

TEST(Probe, SaysWhereTheTimeWent) {
  Folder folder;
  KnownFeed feed;
  auto rings = Engine::OpenRings(folder.path(), feed);
  ASSERT_TRUE(rings.ok()) << rings.status().message();
  WorkPool pool(2);
  Signal signal;
  const device::DeviceRings no_device_rings;
  Engine engine(&feed, &*rings, &no_device_rings, &pool, &signal, nullptr);
  const Probe probe(&feed, &engine, &*rings);
  std::atomic<bool> stop{false};
  std::thread thread([&] { EXPECT_TRUE(engine.Run(stop).ok()); });
  // By then all is published, and the engine has found that there is no more.
  while (engine.decode_times().blocked_on_input_ns < kDeliveries * kStorageNs + 1) std::this_thread::yield();
  while (engine.counters(0).batches.load() < kDeliveries) std::this_thread::yield();
  stop = true;
  thread.join();

  const std::string text = probe.Render();
  EXPECT_EQ(ValueOf(text, Stage("read", "busy")), 1.5);
  EXPECT_EQ(ValueOf(text, Stage("read", "blocked_on_input")), 2);
  EXPECT_EQ(ValueOf(text, Stage("read", "blocked_on_output")), 3.25);
  EXPECT_GE(ValueOf(text, Stage("decode", "busy")), kDeliveries * kPartNs * 1e-9);
  EXPECT_GT(ValueOf(text, Stage("decode", "blocked_on_input")), kDeliveries * kStorageNs * 1e-9);
  EXPECT_EQ(ValueOf(text, Stage("decode", "blocked_on_output")), 0);
  EXPECT_EQ(ValueOf(text, "headrace_loader_decode_threads"), 1) << "of two: no trainer waits";
  EXPECT_EQ(ValueOf(text, "headrace_loader_batches_total{replica=\"0\"}"), kDeliveries);
  EXPECT_EQ(ValueOf(text, "headrace_loader_bytes_total{replica=\"0\"}"), 8 * kDeliveries);
  EXPECT_EQ(ValueOf(text, "headrace_loader_bytes_read_total"), 4096);
  EXPECT_THAT(text, HasSubstr("headrace_loader_info{input=\"ml/known\""));
}

TEST(StageWork, IsBusyButForStorage) {
  StageClock clock;
  const uint64_t begin = ring::MonotonicNs();
  {
    const StageWork work(&clock);
    const StorageWait wait;
    Spin(kStorageNs);
  }
  const uint64_t all = ring::MonotonicNs() - begin;
  const StageTimes times = clock.times();
  EXPECT_GE(times.blocked_on_input_ns, kStorageNs);
  EXPECT_LE(times.busy_ns + times.blocked_on_input_ns, all);
  EXPECT_EQ(times.blocked_on_output_ns, 0u);
}

}  // namespace
}  // namespace headrace::side
