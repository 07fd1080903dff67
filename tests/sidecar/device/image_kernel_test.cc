// The image kernels through the driver, held to arithmetic, and their bandwidth beside that of a copy within the GPU's
// memory. On a real GPU; before the stand-in driver, too, but for the bandwidth.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "sidecar/device/images.h"
#include "tests/sidecar/device/program_images.h"

namespace headrace::device {
namespace {

class ImageKernel : public testing::Test {
 protected:
  void SetUp() override {
    const Result<int> gpus = gpu::CountGpus();
    if (!gpus.ok()) GTEST_SKIP() << "no GPU here: " << gpus.status().ToString();
    driver_ = *gpu::Driver::Open();
    context_ = std::move(*gpu::PrimaryContext::Retain(driver_, 0));
    current_ = std::make_unique<gpu::PrimaryContext::Current>(*context_);
    auto kernels = ImageKernels::Load(context_.get());
    ASSERT_TRUE(kernels.ok()) << kernels.status().ToString();
    kernels_ = std::move(*kernels);
    ASSERT_EQ(driver_->stream_create(&stream_, gpu::kStreamNonBlocking), gpu::kSuccess);
  }
  void TearDown() override {
    if (stream_ != nullptr) {
      EXPECT_EQ(driver_->stream_destroy(stream_), gpu::kSuccess);
    }
    kernels_.reset();
    current_.reset();
  }

  // Memory of the GPU.
  class OnGpu {
   public:
    OnGpu(const gpu::Driver* driver, size_t bytes) : driver_(*driver) {
      EXPECT_EQ(driver_.mem_alloc(&address_, bytes), gpu::kSuccess) << bytes;
    }
    ~OnGpu() { EXPECT_EQ(driver_.mem_free(address_), gpu::kSuccess); }
    OnGpu(const OnGpu&) = delete;
    OnGpu& operator=(const OnGpu&) = delete;
    gpu::DevicePtr address() const { return address_; }

   private:
    const gpu::Driver& driver_;
    gpu::DevicePtr address_ = 0;
  };

  // Images that lie `shift` bytes behind a whole vector, through the kernels.
  void Check(const PixelProgram& program, size_t shift = 0) {
    constexpr int64_t kImages = 5;
    const std::vector<uint8_t> images = RandomImages(program, kImages);
    const std::vector<uint8_t> expected = Made(program, images);
    std::vector<uint8_t> made(expected.size());
    const OnGpu in(driver_, images.size() + shift);
    const OnGpu out(driver_, expected.size());
    ASSERT_EQ(driver_->memcpy_htod_async(in.address() + shift, images.data(), images.size(), stream_), gpu::kSuccess);
    const Status status = kernels_->Enqueue(program, in.address() + shift, kImages, out.address(), stream_);
    ASSERT_TRUE(status.ok()) << status.ToString();
    ASSERT_EQ(driver_->memcpy_dtoh_async(made.data(), out.address(), made.size(), stream_), gpu::kSuccess);
    ASSERT_EQ(driver_->stream_synchronize(stream_), gpu::kSuccess);
    EXPECT_TRUE(made == expected) << program.pixels << " pixels of " << program.channels << " channels, "
                                  << DTypeName(program.within) << " to " << DTypeName(program.result) << ", shifted by "
                                  << shift;
  }

  // Seconds that one of `enqueue` takes in the fastest of some runs of several.
  template <typename Enqueue>
  double Best(Enqueue enqueue) {
    constexpr int kInARow = 10;
    double best = 1e9;
    for (int run = 0; run < 10; ++run) {
      EXPECT_EQ(driver_->stream_synchronize(stream_), gpu::kSuccess);
      const auto start = std::chrono::steady_clock::now();
      for (int i = 0; i < kInARow; ++i) enqueue();
      EXPECT_EQ(driver_->stream_synchronize(stream_), gpu::kSuccess);
      best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / kInARow);
    }
    return best;
  }

  const gpu::Driver* driver_ = nullptr;
  std::unique_ptr<gpu::PrimaryContext> context_;
  std::unique_ptr<gpu::PrimaryContext::Current> current_;
  std::unique_ptr<ImageKernels> kernels_;
  gpu::Stream stream_ = nullptr;
};

constexpr std::pair<DType, DType> kTypes[] = {{DType::kFloat32, DType::kFloat32},
                                              {DType::kFloat32, DType::kFloat16},
                                              {DType::kFloat32, DType::kBfloat16},
                                              {DType::kFloat16, DType::kFloat16},
                                              {DType::kBfloat16, DType::kBfloat16}};

TEST_F(ImageKernel, MakesWhatTheProgramSays) {
  // Tiles: part of one, one, several of which the last is shorter, and rows that are no whole vectors.
  for (const int64_t pixels : {4 * 4, 64 * 64, 96 * 94, 5 * 7, 67 * 71}) {
    for (const auto& [within, result] : kTypes) {
      for (const int64_t channels : {1, 2, 3, 4, 7}) Check(Photographs(pixels, channels, within, result));
      Check(Photographs(pixels, 3, within, result), 1);
    }
  }
}

TEST_F(ImageKernel, ImagesOfATrainingBatch) { Check(Photographs(224 * 224, 3, DType::kFloat32, DType::kFloat16)); }

TEST_F(ImageKernel, NothingIsLaunchedForNothing) {
  const PixelProgram program = Photographs(16, 3, DType::kFloat32, DType::kFloat32);
  EXPECT_TRUE(kernels_->Enqueue(program, 0, 0, 0, stream_).ok());
}

TEST_F(ImageKernel, MoreThanALaunchCanNumberIsAnError) {
  const PixelProgram program = Photographs(1, 3, DType::kFloat32, DType::kFloat32);
  const Status status = kernels_->Enqueue(program, 0, int64_t{1} << 30, 0, stream_);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), testing::HasSubstr("3221225472 blocks"));
}

// Printed, not asserted: what the kernel reads and writes in a second beside what a copy does.
TEST_F(ImageKernel, Bandwidth) {
  constexpr int64_t kImages = 2048;
  constexpr int64_t kPixels = 224 * 224;
  constexpr size_t kIn = kImages * kPixels * 3;
  const OnGpu in(driver_, kIn);
  const OnGpu out(driver_, kIn * 4);
  const auto copy = [&] {
    // NOLINTBEGIN(performance-no-int-to-ptr): the runtime's pointers are the driver's numbers
    EXPECT_EQ(cudaMemcpyAsync(reinterpret_cast<void*>(out.address() + 2 * kIn),
                              reinterpret_cast<const void*>(out.address()), 2 * kIn, cudaMemcpyDeviceToDevice, stream_),
              cudaSuccess);
    // NOLINTEND(performance-no-int-to-ptr)
  };
  const double plain = 4.0 * kIn / Best(copy) / 1e9;
  std::printf("copy_within_gpu          %9.1f GB/s\n", plain);
  for (const auto& [result, bytes] : {std::pair(DType::kFloat16, 2), std::pair(DType::kFloat32, 4)}) {
    const PixelProgram program = Photographs(kPixels, 3, DType::kFloat32, result);
    const double took =
        Best([&] { EXPECT_TRUE(kernels_->Enqueue(program, in.address(), kImages, out.address(), stream_).ok()); });
    const double rate = static_cast<double>(kIn) * (1 + bytes) / took / 1e9;
    std::printf("image_kernel_%-10s  %9.1f GB/s  %6.3f of copy_within_gpu\n", std::string(DTypeName(result)).c_str(),
                rate, rate / plain);
  }
}

}  // namespace
}  // namespace headrace::device
