// Images whose last maps the loader's GPU does, before the stand-in for the CUDA driver, whose kernels are ours: what
// trainers get is what they get from a loader that does all maps on the CPU, bit by bit.
#include <random>

#include "client/unix_connect.h"
#include "common/ring/handshake.h"
#include "sidecar/device/image_code.h"
#include "tests/loader/device_fixture.h"

namespace headrace::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kRecords = 50;

// Files of records: an int64 and an image of random bytes.
class ImagesTest : public DeviceTest {
 protected:
  void SetUp() override {
    if (device::ImageCode().empty()) GTEST_SKIP() << "this build is without CUDA, and so without image kernels";
    WriteImages(16 * 12 * 3);
  }

  void WriteImages(int bytes) {
    std::mt19937 random(7);
    std::ofstream file(files_.path() + "/a.bin", std::ios::binary);
    for (int64_t i = 0; i < kRecords; ++i) {
      file.write(reinterpret_cast<const char*>(&i), sizeof(i));
      for (int b = 0; b < bytes; ++b) file.put(static_cast<char>(random()));
    }
  }

  // `transformations` come behind the maps of the image.
  std::string Spec(const std::string& memory, const std::string& within, const std::string& result,
                   const std::string& transformations, const std::string& shape = "[16, 12, 3]") const {
    return R"({"source": {"files": {"format": "FixedLength", "paths": [")" + files_.path() + R"(/a.bin"]}},
      "features": [{"name": "label", "dtype": "int64"}, {"name": "image", "dtype": "uint8", "shape": )" +
           shape + R"(}],
      "pipeline": [{"map": {"feature": "image", "cast": ")" +
           within + R"("}},
                   {"map": {"feature": "image", "scales": [0.017, 0.0175, 0.0174], "offsets": [-2.1, -2.0, -1.8]}},
                   {"map": {"feature": "image", "transpose": [2, 0, 1]}},
                   {"map": {"feature": "image", "cast": ")" +
           result + R"("}})" + (transformations.empty() ? "" : ", " + transformations) + R"(],
      "delivery": {"prefetchSteps": 2, )" +
           memory + "}}";
  }

  struct Component {
    std::vector<int64_t> shape;
    std::vector<uint8_t> bytes;
    bool operator==(const Component&) const = default;
  };
  using Batch = std::vector<Component>;

  // Of the tensor, wherever it is.
  static Component Read(const headrace_batch* batch, int32_t index) {
    const headrace_tensor tensor = Tensor(batch, index);
    Component read{{tensor.shape, tensor.shape + tensor.ndim}, {}};
    read.bytes.resize(static_cast<size_t>(tensor.nbytes));
    if (read.bytes.empty()) return read;
    EXPECT_EQ(headrace_batch_copy_tensor(batch, index, read.bytes.data()), HEADRACE_OK) << headrace_last_error();
    return read;
  }
  static Batch Read(const headrace_batch* batch) {
    Batch read;
    for (int32_t i = 0; i < headrace_batch_num_tensors(batch); ++i) read.push_back(Read(batch, i));
    return read;
  }

  // All batches of some epochs, each replica's after the other's, and an empty one where an epoch ends.
  std::vector<Batch> ReadAll(const LoaderRun& run, int32_t takes_device, int replicas, int epochs = 2) {
    std::vector<Batch> all;
    if (Connect(run, takes_device) != HEADRACE_OK) {
      ADD_FAILURE() << headrace_last_error();
      return all;
    }
    for (int epoch = 0; epoch < epochs; ++epoch) {
      if (Iterate() != HEADRACE_OK) {
        ADD_FAILURE() << headrace_last_error();
        return all;
      }
      while (true) {
        std::vector<headrace_batch*> batches(static_cast<size_t>(replicas));
        int32_t has_value = 0;
        const headrace_status status = headrace_next_as_optional(iterator_, 60000, batches.data(), &has_value);
        EXPECT_EQ(status, HEADRACE_OK) << headrace_last_error();
        if (status != HEADRACE_OK || has_value == 0) break;
        for (headrace_batch* batch : batches) {
          EXPECT_EQ(Tensor(batch, 1).device_type, 1 + takes_device);
          all.push_back(Read(batch));
          headrace_batch_free(batch);
        }
      }
      all.emplace_back();
    }
    return all;
  }

  // Of the slots in GPU memory, where the GPU makes tensors there; else 0.
  static uint64_t DeviceSlotStride(const LoaderRun& run) {
    return HeaderWord(run.directory(0), offsetof(ring::RingHeader, device_slot_stride));
  }

  // What a loader with a GPU gives is what one without gives. Says whether the GPU did the maps.
  bool GpuGivesWhatTheCpuGives(const std::string& within, const std::string& result, const std::string& transformations,
                               int replicas = 1, const std::string& shape = "[16, 12, 3]") {
    std::vector<Batch> expected;
    {
      const LoaderRun host(Spec(R"("memory": "Host")", within, result, transformations, shape), 1, replicas);
      expected = ReadAll(host, 0, replicas);
    }
    const LoaderRun run(Spec(R"("memory": "Device")", within, result, transformations, shape), 1, replicas);
    const std::vector<Batch> made = ReadAll(run, 1, replicas);
    EXPECT_GT(expected.size(), 2U);
    EXPECT_TRUE(made == expected) << within << " to " << result << ", " << transformations << ", " << shape;
    return DeviceSlotStride(run) != 0;
  }

  const Folder files_;
};

constexpr char kBatch[] = R"({"batch": {"size": 8}})";

TEST_F(ImagesTest, OfEveryType) {
  EXPECT_TRUE(GpuGivesWhatTheCpuGives("float32", "float32", kBatch));
  EXPECT_TRUE(GpuGivesWhatTheCpuGives("float32", "float16", kBatch));
  EXPECT_TRUE(GpuGivesWhatTheCpuGives("float32", "bfloat16", kBatch));
  EXPECT_TRUE(GpuGivesWhatTheCpuGives("float16", "float16", kBatch));
  EXPECT_TRUE(GpuGivesWhatTheCpuGives("bfloat16", "bfloat16", kBatch));
}

TEST_F(ImagesTest, InBatchesOfEveryKind) {
  for (
      const char* const transformations : {
          "",  // one by one
          R"({"batch": {"size": 8, "dropRemainder": true}})",
          R"({"batch": {"size": 8}}, {"batch": {"size": 3}})",
          R"({"batch": {"size": 64}})",  // the only one is not full
          R"({"filter": {"expression": "label % 3 != 1"}}, {"shuffle": {"bufferSize": 16, "seed": 3}}, {"batch": {"size": 8}})",
          R"({"enumerate": {}}, {"take": {"count": 21}}, {"cache": {}}, {"repeat": {"count": 2}}, {"batch": {"size": 8}})",
          R"({"map": {"feature": "label", "cast": "float32"}}, {"batch": {"size": 8}})",
      }) {
    EXPECT_TRUE(GpuGivesWhatTheCpuGives("float32", "float16", transformations));
  }
}

// The last batch leaves some of them without rows.
TEST_F(ImagesTest, CutForReplicasOverGpus) {
  EXPECT_TRUE(GpuGivesWhatTheCpuGives("float32", "float16", kBatch, 2));
  EXPECT_TRUE(GpuGivesWhatTheCpuGives("float32", "float32", R"({"batch": {"size": 9}})", 4));
}

TEST_F(ImagesTest, WhosePixelsAreNoWholeVectors) {
  WriteImages(5 * 7 * 3);
  EXPECT_TRUE(GpuGivesWhatTheCpuGives("float32", "float16", kBatch, 1, "[5, 7, 3]"));
}

TEST_F(ImagesTest, ThatAreUsedAfterwardsStayTheCpus) {
  EXPECT_FALSE(GpuGivesWhatTheCpuGives(
      "float32", "float32",
      R"({"map": {"feature": "image", "as": "half", "cast": "float16"}}, )" + std::string(kBatch)));
}

TEST_F(ImagesTest, AreTheCpusWhereTheDriverIsTooOld) {
  const std::string spec = Spec(R"("memory": "Device")", "float32", "float16", kBatch);
  std::vector<Batch> expected;
  {
    const LoaderRun run(spec, 1, 1);
    expected = ReadAll(run, 1, 1);
  }
  const LoaderRun old(spec, 1, 1, "run", {{"FAKE_CUDA_OLD", "1"}});
  EXPECT_TRUE(ReadAll(old, 1, 1) == expected);
  EXPECT_EQ(DeviceSlotStride(old), 0U);
  EXPECT_TRUE(ReadAll(old, 0, 1) == expected) << "whoever takes host memory is served, too";
}

TEST_F(ImagesTest, UnderAutoAreTheCpusSinceTrainersMayTakeHostMemory) {
  const LoaderRun run(Spec(R"("resourceClaim": "gpu")", "float32", "float16", kBatch), 1, 1);
  const std::vector<Batch> on_gpu = ReadAll(run, 1, 1);
  EXPECT_TRUE(ReadAll(run, 0, 1) == on_gpu);
  EXPECT_EQ(DeviceSlotStride(run), 0U);
}

TEST_F(ImagesTest, OfHostMemoryThereAreNoneAndTheRefusalSaysSo) {
  const LoaderRun run(Spec(R"("memory": "Device")", "float32", "float16", kBatch), 1, 1);
  const auto refusal =
      AllOf(HasSubstr("spec.delivery.memory is Device"), HasSubstr("the last maps of component \"image\""),
            HasSubstr("take GPU memory"), HasSubstr("write spec.delivery.memory: Auto"));
  EXPECT_EQ(Connect(run, 0), HEADRACE_INVALID_ARGUMENT);
  EXPECT_THAT(headrace_last_error(), refusal);
  // The loader does not leave it to clients.
  const Result<int> socket = client::ConnectUnix(run.directory(0), names::kSocketFile);
  ASSERT_TRUE(socket.ok()) << socket.status().ToString();
  const UniqueFd closes(*socket);
  ASSERT_TRUE(ring::SendMessage(*socket, ring::EncodeRequest({0, "Host: I say so", false}), -1).ok());
  int ring = -1;
  const auto answer = ring::ReceiveMessage(*socket, 60000, &ring);
  ASSERT_TRUE(answer.ok()) << answer.status().ToString();
  EXPECT_EQ(ring, -1);
  EXPECT_THAT(ring::DecodeReply(*answer).status().message(), refusal);
}

// A loader that comes back finds images in the ring that no client has read, and has the GPU make them again.
TEST_F(ImagesTest, AreMadeAgainByALoaderThatComesBack) {
  const std::string spec = Spec(R"("memory": "Device")", "float32", "float16", kBatch);
  std::vector<Batch> expected;
  {
    const LoaderRun run(spec, 1, 1);
    expected = ReadAll(run, 1, 1);
  }
  LoaderRun run(spec, 1, 1);
  while (Published(run.directory(0)) < 4) usleep(1000);
  run.Kill(0, SIGKILL);
  run.StartLoader(0);
  EXPECT_TRUE(ReadAll(run, 1, 1) == expected);
  EXPECT_EQ(HeaderWord(run.directory(0), offsetof(ring::RingHeader, generation)), 2U);
}

TEST_F(ImagesTest, GoOnWhereALoaderWasKilled) {
  const std::string spec = Spec(R"("memory": "Device")", "float32", "float16", kBatch);
  std::vector<Batch> expected;
  {
    const LoaderRun run(spec, 1, 1);
    expected = ReadAll(run, 1, 1, 1);
  }
  LoaderRun run(spec, 1, 1);
  ASSERT_EQ(Connect(run), HEADRACE_OK) << headrace_last_error();
  ASSERT_EQ(Iterate(), HEADRACE_OK) << headrace_last_error();
  headrace_batch* const kept = Next();
  for (size_t step = 1; step + 1 < expected.size(); ++step) {
    if (step % 2 == 0) {
      run.Kill(0, SIGKILL);
      run.StartLoader(0);
    }
    headrace_batch* batch = Next();
    EXPECT_TRUE(Read(batch) == expected[step]) << step;
    headrace_batch_free(batch);
  }
  EXPECT_TRUE(Read(kept) == expected[0]) << "it is in the memory of the first";
  headrace_batch_free(kept);
}

}  // namespace
}  // namespace headrace::testing
