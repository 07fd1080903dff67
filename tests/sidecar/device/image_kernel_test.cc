// The image kernel on a GPU, held to the maps, and its bandwidth beside that of a copy within the GPU's memory.
#include "sidecar/device/image_kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "sidecar/device/device.h"
#include "sidecar/device/images.h"
#include "tests/sidecar/mapped_images.h"

namespace headrace::device {
namespace {

using nlohmann::json;
using side::MappedImages;
using side::Normalised;

// Memory of the GPU.
class OnGpu {
 public:
  explicit OnGpu(size_t bytes) { EXPECT_EQ(cudaMalloc(&data_, bytes), cudaSuccess); }
  ~OnGpu() { cudaFree(data_); }
  OnGpu(const OnGpu&) = delete;
  OnGpu& operator=(const OnGpu&) = delete;
  uint8_t* data() const { return static_cast<uint8_t*>(data_); }

 private:
  void* data_ = nullptr;
};

class ImageKernel : public testing::Test {
 protected:
  void SetUp() override {
    const Report report = Probe();
    if (report.gpus.empty()) GTEST_SKIP() << "no GPU here: " << GpuText(report);
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
  }
  void TearDown() override {
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }

  // Images of `shape` that lie `shift` bytes behind a whole vector, through the kernel and through the maps.
  void Check(const json& shape, const json& maps, size_t shift = 0) {
    constexpr int64_t kImages = 5;
    const MappedImages images(shape, maps);
    const auto program = ProgramOf(*images.pixel_maps());
    ASSERT_TRUE(program);
    const std::vector<uint8_t> bytes = images.OneByOne(kImages, 0)[0];
    const std::vector<uint8_t> expected = images.OneByOne(kImages)[0];
    const OnGpu in(bytes.size() + shift);
    const OnGpu out(expected.size());
    ASSERT_EQ(cudaMemcpyAsync(in.data() + shift, bytes.data(), bytes.size(), cudaMemcpyHostToDevice, stream_),
              cudaSuccess);
    const Status status = EnqueueImages(*program, reinterpret_cast<gpu::DevicePtr>(in.data() + shift), kImages,
                                        reinterpret_cast<gpu::DevicePtr>(out.data()), stream_);
    ASSERT_TRUE(status.ok()) << status.ToString();
    std::vector<uint8_t> made(expected.size());
    ASSERT_EQ(cudaMemcpyAsync(made.data(), out.data(), made.size(), cudaMemcpyDeviceToHost, stream_), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    EXPECT_TRUE(made == expected) << shape << maps << " shifted by " << shift;
  }

  // Milliseconds of the fastest of some runs.
  template <typename Enqueue>
  float Best(Enqueue enqueue) {
    cudaEvent_t start = nullptr;
    cudaEvent_t end = nullptr;
    cudaEventCreate(&start);
    cudaEventCreate(&end);
    float best = 1e9F;
    for (int i = 0; i < 20; ++i) {
      cudaEventRecord(start, stream_);
      enqueue();
      cudaEventRecord(end, stream_);
      EXPECT_EQ(cudaEventSynchronize(end), cudaSuccess);
      float took = 0;
      cudaEventElapsedTime(&took, start, end);
      best = std::min(best, took);
    }
    cudaEventDestroy(start);
    cudaEventDestroy(end);
    return best;
  }

  cudaStream_t stream_ = nullptr;
};

TEST_F(ImageKernel, MakesWhatTheMapsMake) {
  const json first = {2, 0, 1};
  for (const json& shape : json{{4, 4, 3}, {64, 64, 3}, {224, 224, 3}, {5, 7, 3}, {67, 71, 3}}) {
    Check(shape, Normalised("float32", "float32", first));
    Check(shape, Normalised("float32", "float16", first));
    Check(shape, Normalised("float32", "bfloat16", first));
    Check(shape, Normalised("float16", "float16", first));
    Check(shape, Normalised("bfloat16", "bfloat16", first));
    Check(shape, Normalised("float32", "float16", first), 1);
  }
  const json alike = json::parse(R"([{"cast": "float32"}, {"scale": -0.1}, {"transpose": [2, 0, 1]}])");
  for (const int channels : {1, 2, 4, 7}) Check({68, 64, channels}, alike);
}

// Printed, not asserted: what the kernel reads and writes in a second beside what a copy does.
TEST_F(ImageKernel, Bandwidth) {
  constexpr int64_t kImages = 2048;
  constexpr size_t kPixels = 224 * 224;
  constexpr size_t kIn = kImages * kPixels * 3;
  const OnGpu in(kIn);
  const OnGpu out(kIn * 4);
  ASSERT_EQ(cudaMemset(in.data(), 7, kIn), cudaSuccess);
  const float copy =
      Best([&] { cudaMemcpyAsync(out.data() + 2 * kIn, out.data(), 2 * kIn, cudaMemcpyDeviceToDevice, stream_); });
  const double plain = 4.0 * kIn / copy / 1e6;
  std::printf("copy_within_gpu          %9.1f GB/s\n", plain);
  for (const auto& [result, bytes] : {std::pair("float16", 2), std::pair("float32", 4)}) {
    const auto maps = MappedImages({224, 224, 3}, Normalised("float32", result, {2, 0, 1})).pixel_maps();
    const auto program = ProgramOf(*maps);
    const float took =
        Best([&] { EXPECT_EQ(LaunchImageKernel(*program, in.data(), kImages, out.data(), stream_), cudaSuccess); });
    const double rate = static_cast<double>(kIn) * (1 + bytes) / took / 1e6;
    std::printf("image_kernel_%-10s  %9.1f GB/s  %6.3f of copy_within_gpu\n", result, rate, rate / plain);
  }
}

}  // namespace
}  // namespace headrace::device
