// A loader and the trainer that reads from it, killed in turn while batches are on their way to the GPU: by the loader
// (Device) or by the client (Pinned), in one set of namespaces and in those that containers have. Against the stand-in
// for the driver, or on a GPU.
#include <gmock/gmock.h>

#include <chrono>

#include "tests/loader/device_run.h"

namespace headrace::testing {
namespace {

constexpr uint64_t kSlots = 6;
// On a GPU so large that copies take long enough to be hit; the stand-in's do at any size.
int64_t RowsOfRange() { return IsStandIn() ? 4096 : 1 << 20; }

std::string Delivery(const std::string& memory) {
  return R"("delivery": {"memory": ")" + memory + R"(", "prefetchSteps": 4}})";
}
std::string Range(const std::string& memory) {
  return R"({"source": {"range": {"stop": 1000000000000}}, "pipeline": [{"batch": {"size": )" +
         std::to_string(RowsOfRange()) + "}}], " + Delivery(memory);
}
// Beside the number an image of it, of one pixel, which the GPU makes.
std::string Images() {
  return R"({"source": {"range": {"stop": 1000000000000}}, "pipeline": [
    {"map": {"feature": "value", "as": "image", "cast": "uint8"}}, {"map": {"feature": "image", "reshape": [1, 1, 1]}},
    {"map": {"feature": "image", "cast": "float32"}}, {"map": {"feature": "image", "scale": 2}},
    {"map": {"feature": "image", "transpose": [2, 0, 1]}}, {"batch": {"size": 64}}], )" +
         Delivery("Device");
}

// What the GPU holds of loader and trainer while both are there, as the stand-in counts it.
struct Held {
  size_t rings = 0;            // of the loader, which the trainer has mapped
  int64_t trainers_bytes = 0;  // that it has mapped, or made itself as it came to need them, at most
};
constexpr Held kDevice = {1, 2 << 20};       // six slots of 32 KiB at most, as the GPU gives memory out
constexpr Held kPinned = {0, 4 * 4096 * 8};  // four batches

class DeviceKills : public InNamespaces {
 protected:
  void LoseAndTearNothingAndLeaveNoMemory(const std::string& spec, int64_t rows, const Held& held) {
    setenv("FAKE_CUDA_TAG", MemoryTag().c_str(), 1);
    setenv("HEADRACE_LOADER_TIMEOUT", "60", 1);
    const size_t free_before = IsStandIn() ? 0 : FreeGpuMemory();
    {
      // Copies take long enough to be hit.
      LoaderRun run(spec, 1, 1, "run", {{"FAKE_CUDA_COPY_US", "300"}}, GetParam());
      KillInTurn(&run, rows, held);
    }
    EXPECT_EQ(LiveAllocations(), 0U);
    if (!IsStandIn()) AwaitFreeGpuMemory(free_before);
  }

 private:
  std::unique_ptr<DeviceTrainer> StartTrainer(const LoaderRun& run, int64_t step) const {
    return std::make_unique<DeviceTrainer>(run.folder(), run.directory(0), step, GetParam());
  }

  void KillInTurn(LoaderRun* run, int64_t rows, const Held& held) {
    int64_t step = 0;
    const auto is_next = [&](const std::string& line) {
      const bool next = line == std::to_string(step) + " " + std::to_string(step * rows);
      step += 1;
      return next;
    };
    auto trainer = StartTrainer(*run, 0);
    // Before the stand-in, where namespaces or Pinned are all that is new, a few show it.
    const bool all = !IsStandIn() || (GetParam() == Namespaces::kShared && held.rings > 0);
    for (int kills = 0; kills < (all ? 100 : 30); ++kills) {
      // Some are killed before their first batch has come.
      for (int lines = kills % 9; lines > 0; --lines) {
        const std::string line = trainer->Line();
        ASSERT_TRUE(is_next(line)) << line << ", after " << kills << " kills";
      }
      if (kills % 2 == 0) {
        EXPECT_EQ(run->Kill(0, SIGKILL), -SIGKILL) << "it had ended before";
        run->StartLoader(0);
      } else {
        trainer->Kill();
        trainer = StartTrainer(*run, step);
      }
    }
    trainer->Kill();
    trainer = StartTrainer(*run, step);
    EXPECT_TRUE(is_next(trainer->Line()));
    run->Kill(0, SIGKILL);
    const uint64_t before = Published(run->directory(0));
    run->StartLoader(0);
    // By then the trainer has read some that the new loader published, in the new loader's memory.
    while (Published(run->directory(0)) < before + 2 * kSlots) usleep(1000);
    trainer->Finish();
    std::string line = trainer->Line();
    for (; line.find("end") == std::string::npos; line = trainer->Line()) ASSERT_TRUE(is_next(line)) << line;
    if (!IsStandIn()) return;
    const int64_t bytes = std::stoll(line.substr(line.find_last_of(' ') + 1));
    EXPECT_GT(bytes, 0) << line;
    EXPECT_LE(bytes, held.trainers_bytes) << "what it had of the loader before has gone";
    EXPECT_EQ(LiveAllocations(), held.rings);
    trainer->Kill();
    EXPECT_EQ(LiveAllocations(), held.rings) << "the loader's";
  }

  // The driver ends what processes left after they have ended.
  static void AwaitFreeGpuMemory(size_t bytes) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    size_t free = FreeGpuMemory();
    for (; free < bytes && std::chrono::steady_clock::now() < deadline; free = FreeGpuMemory()) usleep(100000);
    EXPECT_GE(free, bytes) << "GPU memory is left behind, or somebody else uses this GPU";
  }
};

TEST_P(DeviceKills, OfCopies) { LoseAndTearNothingAndLeaveNoMemory(Range("Device"), RowsOfRange(), kDevice); }

TEST_P(DeviceKills, OfImagesThatTheGpuMakes) { LoseAndTearNothingAndLeaveNoMemory(Images(), 64, kDevice); }

TEST_P(DeviceKills, OfCopiesByTheClient) {
  LoseAndTearNothingAndLeaveNoMemory(Range("Pinned"), RowsOfRange(), kPinned);
}

INSTANTIATE_TEST_SUITE_P(In, DeviceKills, ::testing::Values(Namespaces::kShared, Namespaces::kOwn),
                         [](const auto& info) {
                           return info.param == Namespaces::kShared ? "OneSetOfNamespaces" : "NamespacesOfTheirOwn";
                         });

}  // namespace
}  // namespace headrace::testing
