// A loader that fills GPU memory, in a process of its own, and a trainer in this one, both before the stand-in for the
// CUDA driver: contents, order of slots and streams, who outlives whom, and where batches go.
#include "tests/loader/device_fixture.h"
#include "tests/sidecar/examples.h"

namespace headrace::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int64_t kRows = 512;
constexpr int64_t kRing = 2 << 20;
constexpr char kTail[] =
    R"("pipeline": [{"batch": {"size": 512}}], "delivery": {"memory": "Device", "prefetchSteps": 2}})";
const std::string kEndless = std::string(R"({"source": {"range": {"stop": 1000000000}}, )") + kTail;
const std::string kFourSteps = std::string(R"({"source": {"range": {"stop": 2048}}, )") + kTail;

std::vector<int64_t> Range(int64_t first, int64_t rows = kRows) {
  std::vector<int64_t> values(static_cast<size_t>(rows));
  for (int64_t& value : values) value = first++;
  return values;
}

TEST_F(DeviceTest, BatchesAreInTheLoadersMemoryEpochAfterEpoch) {
  LoaderRun run(kFourSteps, 1, 1);
  ASSERT_EQ(Connect(run), HEADRACE_OK) << headrace_last_error();
  EXPECT_THAT(Memory(), AllOf(StartsWith("Device: GPU 0 (GPU-"), HasSubstr("filled by the loader"),
                              HasSubstr("spec.delivery.memory is Device")));
  for (int epoch = 0; epoch < 5; ++epoch) {
    ASSERT_EQ(Iterate(), HEADRACE_OK) << headrace_last_error();
    for (int64_t step = 0; step < 4; ++step) {
      headrace_batch* batch = Next();
      const headrace_tensor tensor = Tensor(batch);
      EXPECT_EQ(tensor.device_type, 2);
      EXPECT_EQ(tensor.device_id, 0);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.data) % 64, 0U);
      EXPECT_EQ(Values(batch), Range(step * kRows)) << epoch;
      headrace_batch_free(batch);
    }
    headrace_batch* none = nullptr;
    EXPECT_EQ(headrace_next(iterator_, 60000, &none), HEADRACE_END);
  }
  EXPECT_EQ(State().device_bytes, kRing);
  Disconnect();
  EXPECT_EQ(run.Kill(0, SIGTERM), 0);
}

TEST_F(DeviceTest, EachReplicasGpuIsFoundByItsName) {
  LoaderRun run(kEndless, 1, 2, "run", {{"FAKE_CUDA_VISIBLE", "1,0"}});
  ASSERT_EQ(Connect(run), HEADRACE_OK) << headrace_last_error();
  ASSERT_EQ(Iterate(), HEADRACE_OK) << headrace_last_error();
  for (int64_t step = 0; step < 10; ++step) {
    headrace_batch* batches[2];
    ASSERT_EQ(headrace_next(iterator_, 60000, batches), HEADRACE_OK) << headrace_last_error();
    for (int replica = 0; replica < 2; ++replica) {
      EXPECT_EQ(Tensor(batches[replica]).device_id, 1 - replica) << "the loader's GPU " << replica;
      EXPECT_EQ(Values(batches[replica]), Range(step * kRows + replica * kRows / 2, kRows / 2));
      headrace_batch_free(batches[replica]);
    }
  }
}

TEST_F(DeviceTest, SlotsAreNotFilledWhileStreamsReadThem) {
  LoaderRun run(kEndless, 1, 1);
  ASSERT_EQ(Connect(run), HEADRACE_OK) << headrace_last_error();
  ASSERT_EQ(Iterate(), HEADRACE_OK) << headrace_last_error();
  Stream one(driver_);
  Stream other(driver_);
  for (int64_t step = 0; step < 24;) {
    fakes::HeldKernel kernel;
    const bool both = step % 8 == 0;
    one.Run(&kernel);
    if (both) other.Run(&kernel);
    // All four slots, each freed while the kernels before its reading run.
    std::vector<std::vector<int64_t>> read(8);
    for (size_t slot = 0; slot < 4; ++slot) {
      headrace_batch* batch = Next();
      one.Use(batch);
      one.Read(Tensor(batch), &read[2 * slot]);
      if (both) other.Use(batch);
      if (both) other.Read(Tensor(batch), &read[2 * slot + 1]);
      headrace_batch_free(batch);
    }
    headrace_batch* none = nullptr;
    EXPECT_EQ(headrace_next(iterator_, 20, &none), HEADRACE_TIMED_OUT) << "no slot has been drained";
    kernel.End();
    one.Synchronize();
    other.Synchronize();
    for (size_t slot = 0; slot < 4; ++slot, ++step) {
      EXPECT_EQ(read[2 * slot], Range(step * kRows));
      if (both) {
        EXPECT_EQ(read[2 * slot + 1], Range(step * kRows));
      }
    }
  }
}

TEST_F(DeviceTest, NewIteratorsAndSeeksSkipWhatWasPublished) {
  LoaderRun run(kEndless, 1, 1);
  ASSERT_EQ(Connect(run), HEADRACE_OK) << headrace_last_error();
  for (int64_t round = 0; round < 20; ++round) {
    headrace_position place{};
    place.size = sizeof(place);
    place.epoch = round / 2;
    place.step = 100 * round;
    headrace_iterator_free(iterator_);
    iterator_ = nullptr;
    if (round % 3 == 2) {
      ASSERT_EQ(Iterate(), HEADRACE_OK) << headrace_last_error();
      ASSERT_EQ(headrace_iterator_position(iterator_, &place), HEADRACE_OK);
    } else {
      ASSERT_EQ(headrace_iterator_create_at(dataset_, 0, &place, &iterator_), HEADRACE_OK) << headrace_last_error();
    }
    for (int64_t step = place.step; step < place.step + round % 5; ++step) {
      headrace_batch* batch = Next();
      EXPECT_EQ(Values(batch), Range(step * kRows));
      headrace_batch_free(batch);
    }
  }
}

TEST_F(DeviceTest, RowsOfDifferentLengthStayInTheRing) {
  const std::string folder = MemoryTag();
  std::filesystem::create_directory("/dev/shm/" + folder);
  std::ofstream records("/dev/shm/" + folder + "/a.tfrecord", std::ios::binary);
  for (int64_t i = 0; i < 64; ++i) {
    const std::vector<int64_t> tokens(i % 2 == 0 ? 0 : 1, i);
    records << side::TFRecordOf(side::ExampleOf({{"id", side::Int64List({i})},
                                                 {"text", side::BytesList("t" + std::to_string(i))},
                                                 {"tokens", side::Int64List(tokens)}}));
  }
  records.close();
  LoaderRun run(R"({"source": {"files": {"format": "TFRecord", "paths": ["/dev/shm/)" + folder + R"(/a.tfrecord"]}},
      "features": [{"name": "id", "dtype": "int64"}, {"name": "text", "dtype": "string"},
                   {"name": "tokens", "dtype": "int64", "shape": [-1]}],
      "pipeline": [{"batch": {"size": 8}}], "delivery": {"memory": "Device", "prefetchSteps": 2}})",
                1, 1);
  ASSERT_EQ(Connect(run), HEADRACE_OK) << headrace_last_error();
  ASSERT_EQ(Iterate(), HEADRACE_OK) << headrace_last_error();
  for (int64_t step = 0; step < 8; ++step) {
    headrace_batch* batch = Next();
    EXPECT_EQ(Tensor(batch, 0).device_type, 2);
    EXPECT_EQ(Values(batch, 0), Range(step * 8, 8));
    const headrace_tensor text = Tensor(batch, 1);
    EXPECT_EQ(text.device_type, 1);
    EXPECT_EQ(std::string(static_cast<const char*>(text.data), static_cast<size_t>(text.row_splits[1])),
              "t" + std::to_string(step * 8));
    const headrace_tensor tokens = Tensor(batch, 2);
    EXPECT_EQ(tokens.device_type, 1);
    EXPECT_EQ(tokens.num_values, 4);
    EXPECT_EQ(static_cast<const int64_t*>(tokens.data)[3], step * 8 + 7);
    headrace_batch_free(batch);
  }
  std::filesystem::remove_all("/dev/shm/" + folder);
}

TEST_F(DeviceTest, ATrainerOfHostMemoryIsServedAndOneWithAGpuAfterIt) {
  LoaderRun run(kEndless, 1, 1);
  for (const int32_t takes_device : {0, 1, 0, 1}) {
    ASSERT_EQ(Connect(run, takes_device), HEADRACE_OK) << headrace_last_error();
    EXPECT_THAT(Memory(), StartsWith(takes_device == 0 ? "Host: the trainer takes host memory only" : "Device: "));
    ASSERT_EQ(Iterate(), HEADRACE_OK) << headrace_last_error();
    for (int64_t step = 0; step < 12; ++step) {  // three times round the ring
      headrace_batch* batch = Next();
      EXPECT_EQ(Tensor(batch).device_type, 1 + takes_device);
      EXPECT_EQ(Values(batch), Range(step * kRows));
      headrace_batch_free(batch);
    }
  }
}

TEST_F(DeviceTest, BatchesOutliveTheLoaderThatMadeThem) {
  LoaderRun run(kEndless, 1, 1);
  ASSERT_EQ(Connect(run), HEADRACE_OK) << headrace_last_error();
  ASSERT_EQ(Iterate(), HEADRACE_OK) << headrace_last_error();
  Stream stream(driver_);
  headrace_batch* kept = Next();
  int64_t step = 1;
  for (int restarts = 0; restarts < 3; ++restarts) {
    run.Kill(0, SIGKILL);
    run.StartLoader(0);
    for (int batches = 0; batches < 8; ++batches, ++step) {
      headrace_batch* batch = Next();
      EXPECT_EQ(Values(batch), Range(step * kRows));
      headrace_batch_free(batch);
    }
    EXPECT_EQ(State().device_bytes, 2 * kRing) << "this loader's, and the one of the batch that is kept";
    EXPECT_EQ(Values(kept), Range(0));
  }
  fakes::HeldKernel kernel;
  stream.Use(kept);
  stream.Run(&kernel);
  std::vector<int64_t> read;
  stream.Read(Tensor(kept), &read);
  kernel.End();
  headrace_batch_free(kept);
  EXPECT_EQ(State().device_bytes, kRing) << "the memory is given back once no stream reads it";
  EXPECT_EQ(read, Range(0));
  // All slots come round.
  for (int batches = 0; batches < 12; ++batches, ++step) {
    headrace_batch* batch = Next();
    EXPECT_EQ(Values(batch), Range(step * kRows));
    headrace_batch_free(batch);
  }
}

TEST_F(DeviceTest, AChildByForkMayDropWhatItInherits) {
  LoaderRun run(kEndless, 1, 1);
  ASSERT_EQ(Connect(run), HEADRACE_OK) << headrace_last_error();
  ASSERT_EQ(Iterate(), HEADRACE_OK) << headrace_last_error();
  headrace_batch* batch = Next();
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    headrace_batch* none = nullptr;
    if (headrace_next(iterator_, 0, &none) != HEADRACE_UNAVAILABLE) _exit(1);
    headrace_batch_free(batch);
    headrace_iterator_free(iterator_);
    headrace_dataset_free(dataset_);
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(Values(batch), Range(0));
  headrace_batch_free(batch);
}

std::string Auto(const std::string& delivery) {
  return R"({"source": {"range": {"stop": 2048}}, "pipeline": [{"batch": {"size": 512}}],
             "distribution": {"replicasPerWorker": 1}, "delivery": {)" +
         delivery + "}}";
}

class AutoTest : public DeviceTest {
 protected:
  // Where a trainer of this process gets its batches, and that it does.
  std::string Choose(const std::string& delivery, const std::map<std::string, std::string>& loaders_environment = {}) {
    LoaderRun run(Auto(delivery), 1, 1, "run", loaders_environment);
    if (Connect(run) != HEADRACE_OK || Iterate() != HEADRACE_OK) return headrace_last_error();
    headrace_batch* batch = Next();
    EXPECT_EQ(Values(batch), Range(0));
    headrace_batch_free(batch);
    std::string memory = Memory();
    Disconnect();
    return memory;
  }
  // A Pinned trainer's copies are its own.
  void TearDown() override {
    Disconnect();
    const FakeCudaState after = State();
    EXPECT_EQ(after.contexts + after.streams + after.events + after.registrations + after.device_bytes, 0);
  }
};

TEST_F(AutoTest, IsDeviceWithAClaimAndAGpuInTheLoader) {
  EXPECT_THAT(Choose(R"("resourceClaim": "gpu")"),
              AllOf(StartsWith("Device: GPU 0 (GPU-"), HasSubstr("spec.delivery.memory is Auto")));
}

TEST_F(AutoTest, IsPinnedWithoutAClaimAndSaysSo) {
  EXPECT_THAT(Choose(R"("memory": "Auto")"),
              AllOf(StartsWith("Pinned: GPU 0 of the 2"), HasSubstr("there is no spec.delivery.resourceClaim")));
}

TEST_F(AutoTest, IsPinnedWhereTheLoaderHasNoGpu) {
  for (const std::string delivery : {R"("resourceClaim": "gpu")", R"("memory": "Device")"}) {
    EXPECT_THAT(Choose(delivery, {{"HEADRACE_LIBCUDA", "/nowhere/libcuda.so.1"}}),
                AllOf(StartsWith("Pinned: GPU 0 of the 2"), HasSubstr("the loader has no GPU: no CUDA driver")));
  }
}

TEST_F(AutoTest, GoesBySightOfTheLoadersGpu) {
  const std::map<std::string, std::string> other = {{"FAKE_CUDA_GPUS", "3"}, {"FAKE_CUDA_VISIBLE", "2"}};
  EXPECT_THAT(Choose(R"("resourceClaim": "gpu")", other),
              AllOf(StartsWith("Pinned: GPU 0 of the 2"), HasSubstr("which this process does not see")));
  EXPECT_THAT(Choose(R"("memory": "Device")", other),
              AllOf(StartsWith("spec.delivery.memory is Device, and the loader fills replica 0's ring on GPU-"),
                    HasSubstr("which this process does not see: give trainer and loader the whole claim")));
}

TEST_F(AutoTest, AGpuThatCannotShareIsAnErrorThatSaysSo) {
  EXPECT_THAT(Choose(R"("memory": "Device")", {{"FAKE_CUDA_WITHOUT_ATTRIBUTE", "103"}}),
              AllOf(HasSubstr("a ring for replica 0 on GPU 0"), HasSubstr("attribute 103 is 0")));
}

}  // namespace
}  // namespace headrace::testing
