// A loader that fills GPU memory and the trainer that reads it, killed in turn while batches are on their way.
#include <gmock/gmock.h>

#include "tests/loader/device_run.h"

namespace headrace::testing {
namespace {

constexpr int kKills = 100;
constexpr uint64_t kSlots = 6;
constexpr int64_t kRing = 2 << 20;  // six slots of 32 KiB at most, as the GPU gives memory out

constexpr char kRange[] = R"({"source": {"range": {"stop": 1000000000000}}, "pipeline": [{"batch": {"size": 4096}}],
    "delivery": {"memory": "Device", "prefetchSteps": 4}})";
// Beside the number an image of it, of one pixel, which the GPU makes.
constexpr char kImages[] = R"({"source": {"range": {"stop": 1000000000000}}, "pipeline": [
    {"map": {"feature": "value", "as": "image", "cast": "uint8"}}, {"map": {"feature": "image", "reshape": [1, 1, 1]}},
    {"map": {"feature": "image", "cast": "float32"}}, {"map": {"feature": "image", "scale": 2}},
    {"map": {"feature": "image", "transpose": [2, 0, 1]}}, {"batch": {"size": 64}}],
    "delivery": {"memory": "Device", "prefetchSteps": 4}})";

void LoseAndTearNothingAndLeaveNoMemory(const char* spec, int64_t rows) {
  setenv("FAKE_CUDA_TAG", MemoryTag().c_str(), 1);
  setenv("HEADRACE_LOADER_TIMEOUT", "60", 1);
  {
    // Copies take long enough to be hit.
    LoaderRun run(spec, 1, 1, "run", {{"FAKE_CUDA_COPY_US", "300"}});
    auto trainer = std::make_unique<DeviceTrainer>(run.directory(0), 0);
    int64_t step = 0;
    for (int kills = 0; kills < kKills; ++kills) {
      // Some are killed before their first batch has come.
      for (int lines = kills % 9; lines > 0; --lines, ++step) {
        ASSERT_EQ(trainer->Line(), std::to_string(step) + " " + std::to_string(step * rows)) << kills;
      }
      if (kills % 2 == 0) {
        EXPECT_EQ(run.Kill(0, SIGKILL), -SIGKILL) << "it had ended before";
        run.StartLoader(0);
      } else {
        trainer->Kill();
        trainer = std::make_unique<DeviceTrainer>(run.directory(0), step);
      }
    }
    trainer->Kill();
    trainer = std::make_unique<DeviceTrainer>(run.directory(0), step);
    const auto is_next = [&](const std::string& line) {
      const bool next = line == std::to_string(step) + " " + std::to_string(step * rows);
      step += 1;
      return next;
    };
    EXPECT_TRUE(is_next(trainer->Line()));
    run.Kill(0, SIGKILL);
    const uint64_t before = Published(run.directory(0));
    run.StartLoader(0);
    // By then the trainer has read some that the new loader published, in the new loader's memory.
    while (Published(run.directory(0)) < before + 2 * kSlots) usleep(1000);
    trainer->Finish();
    std::string line = trainer->Line();
    for (; line.find("end") == std::string::npos; line = trainer->Line()) ASSERT_TRUE(is_next(line)) << line;
    EXPECT_EQ(line, "end " + std::to_string(kRing)) << "what it had of the loader before has gone";
    EXPECT_EQ(LiveAllocations(), 1U);
    trainer->Kill();
    EXPECT_EQ(LiveAllocations(), 1U) << "the loader's";
  }
  EXPECT_EQ(LiveAllocations(), 0U);
}

TEST(DeviceKills, OfCopies) { LoseAndTearNothingAndLeaveNoMemory(kRange, 4096); }

TEST(DeviceKills, OfImagesThatTheGpuMakes) { LoseAndTearNothingAndLeaveNoMemory(kImages, 64); }

}  // namespace
}  // namespace headrace::testing
