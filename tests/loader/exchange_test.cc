// Loaders that hand batches to each other over NCCL, as processes, against stand-ins for NCCL and the driver, and,
// where there is a GPU, over the real ones (loader/exchange_gpu); held to what the same loaders deliver when each reads
// by itself.
#include <gmock/gmock.h>

#include <atomic>
#include <random>
#include <thread>

#include "common/gpu/driver.h"
#include "tests/loader/run.h"
#include "tests/sidecar/files.h"

namespace headrace::testing {
namespace {

using ::testing::HasSubstr;

constexpr int kWorkers = 3;
constexpr int kReplicas = 2;

using Epochs = std::vector<std::vector<Reader::Step>>;

class ExchangeRun : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const Result<int> gpus = gpu::CountGpus();
    if (!gpus.ok()) GTEST_SKIP() << "no GPU here: " << gpus.status().ToString();
  }

  // Compressed, so that no loader can seek in it.
  ExchangeRun() {
    std::string bytes;
    for (int64_t i = 0; i < 1000; ++i) {
      bytes += side::TFRecordOf(side::ExampleOf({{"x", side::Int64List({i})}}));
    }
    std::ofstream(data_.path() + "/a.gz", std::ios::binary) << side::GzipOf(bytes);
  }

  std::string Spec(const std::string& collective) const {
    return R"({"source": {"files": {"paths": [")" + data_.path() + R"(/a.gz"]}},
               "features": [{"name": "x", "dtype": "int64", "shape": []}],
               "pipeline": [{"shuffle": {"bufferSize": 50, "seed": 5}}, {"batch": {"size": 12}}],
               "distribution": {"autoShardPolicy": ")" +
           std::string(GetParam()) + R"(", "collective": )" + collective +
           R"(}, "delivery": {"memory": "Auto", "resourceClaim": "gpu"}})";
  }

  // What each worker's trainer gets in so many epochs.
  static std::vector<Epochs> Read(const LoaderRun& run, size_t epochs, std::atomic<uint32_t>* read = nullptr,
                                  std::vector<std::string>* errors = nullptr) {
    std::vector<Epochs> all(kWorkers);
    std::vector<std::thread> trainers;
    for (int w = 0; w < kWorkers; ++w) {
      trainers.emplace_back([&, w] {
        Reader reader(run.directory(w));
        for (size_t epoch = 0; epoch < epochs && reader.error().empty(); ++epoch) {
          reader.Start();
          std::vector<Reader::Step>& steps = all[static_cast<size_t>(w)].emplace_back();
          for (Reader::Step step = reader.Next(); !step.empty(); step = reader.Next()) {
            steps.push_back(std::move(step));
            if (read != nullptr) ++*read;
          }
        }
        if (errors != nullptr) {
          (*errors)[static_cast<size_t>(w)] = reader.error();
        } else {
          EXPECT_EQ(reader.error(), "") << "worker " << w;
        }
      });
    }
    for (std::thread& trainer : trainers) trainer.join();
    return all;
  }

  Folder data_;
};

INSTANTIATE_TEST_SUITE_P(Policies, ExchangeRun, ::testing::Values("Off", "Data"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(ExchangeRun, TrainersSeeNoDifference) {
  const std::vector<Epochs> alone = Read(LoaderRun(Spec(R"({"backend": "TCP"})"), kWorkers, kReplicas), 3);
  ::testing::internal::CaptureStderr();
  const std::vector<Epochs> shared = Read(LoaderRun(Spec(R"({"backend": "NCCL"})"), kWorkers, kReplicas), 3);
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(shared, alone);
  EXPECT_THAT(log, HasSubstr("batches come by exchange"));
}

// Of no worker that dies at any moment is anything lost, or had twice, at any other; and it is named.
TEST_P(ExchangeRun, WhenALoaderIsKilledTheOthersReadOn) {
  const std::vector<Epochs> alone = Read(LoaderRun(Spec(R"({"backend": "TCP"})"), kWorkers, kReplicas), 4);
  std::mt19937 random(11);
  for (int victim = 0; victim < kWorkers; ++victim) {
    ::testing::internal::CaptureStderr();
    LoaderRun run(Spec(R"({"backend": "NCCL", "timeoutSeconds": 5})"), kWorkers, kReplicas);
    std::atomic<uint32_t> read{0};
    std::vector<Epochs> got;
    std::thread trainers([&] { got = Read(run, 4, &read); });
    const uint32_t moment = 20 + random() % 200;
    while (read < moment) std::this_thread::yield();
    run.Kill(victim, SIGKILL);
    run.StartLoader(victim);
    trainers.join();
    const std::string log = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(got, alone) << "victim " << victim << " killed at " << moment << "\n" << log;
    EXPECT_THAT(log, HasSubstr("the exchange of batches between loaders is over"));
    EXPECT_THAT(log, HasSubstr("worker " + std::to_string(victim)));
  }
}

TEST_P(ExchangeRun, UnderOnErrorFailAllAreToldWhoDied) {
  constexpr int kVictim = 1;
  LoaderRun run(Spec(R"({"backend": "NCCL", "onError": "Fail"})"), kWorkers, kReplicas);
  std::atomic<uint32_t> read{0};
  std::vector<std::string> errors(kWorkers);
  setenv("HEADRACE_LOADER_TIMEOUT", "1", 1);  // the victim's trainer need not wait for it
  std::thread trainers([&] { Read(run, 100000, &read, &errors); });
  while (read < 50) std::this_thread::yield();
  run.Kill(kVictim, SIGKILL);
  trainers.join();
  for (const int other : {0, 2}) {
    EXPECT_THAT(errors[static_cast<size_t>(other)], HasSubstr("onError is Fail")) << "worker " << other;
    EXPECT_THAT(errors[static_cast<size_t>(other)], HasSubstr("worker 1")) << "worker " << other;
  }
}

TEST_P(ExchangeRun, LoadersOfOneGpuReadByThemselves) {
  setenv("FAKE_NCCL_GPU", "0000:18:00.0", 1);
  setenv("NCCL_MULTI_RANK_GPU_ENABLE", "0", 1);
  ::testing::internal::CaptureStderr();
  const std::vector<Epochs> got = Read(LoaderRun(Spec(R"({"backend": "NCCL"})"), kWorkers, kReplicas), 1);
  const std::string log = ::testing::internal::GetCapturedStderr();
  unsetenv("FAKE_NCCL_GPU");
  setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);
  EXPECT_EQ(got, Read(LoaderRun(Spec(R"({"backend": "TCP"})"), kWorkers, kReplicas), 1));
  EXPECT_THAT(log, HasSubstr("ncclCommInitRankConfig: invalid usage"));
}

}  // namespace
}  // namespace headrace::testing
