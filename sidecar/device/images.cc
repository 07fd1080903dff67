#include "sidecar/device/images.h"

#include <algorithm>

#include "sidecar/device/image_code.h"
#include "sidecar/device/image_tile.h"

namespace headrace::device {
namespace {

// Threads for the groups of pixels that a tile holds, in whole warps.
unsigned ThreadsFor(int64_t pixels, int64_t pixels_of_group) {
  constexpr int64_t kWarp = 32;
  const int64_t groups = std::min<int64_t>(pixels, kTilePixels) / pixels_of_group;
  return static_cast<unsigned>(std::clamp<int64_t>((groups + kWarp - 1) / kWarp * kWarp, kWarp, kMaxThreads));
}

}  // namespace

Result<std::unique_ptr<ImageKernels>> ImageKernels::Load(const gpu::PrimaryContext* context) {
  if (ImageCode().empty()) return Unavailable("images on the GPU: this build is without CUDA");
  const gpu::Driver& driver = context->driver();
  const gpu::PrimaryContext::Current current(*context);
  std::unique_ptr<ImageKernels> kernels(new ImageKernels(context));
  RETURN_IF_ERROR(driver.Check(driver.module_load_data(&kernels->module_, ImageCode().data()),
                               "the image kernels: cuModuleLoadData"));
  const auto find = [&](const char* name, gpu::Function* function) {
    return driver.Check(driver.module_get_function(function, kernels->module_, name),
                        std::string("the image kernels: cuModuleGetFunction of ") + name);
  };
  RETURN_IF_ERROR(find(kOneChannelKernel, &kernels->one_channel_));
  RETURN_IF_ERROR(find(kThreeChannelsKernel, &kernels->three_channels_));
  RETURN_IF_ERROR(find(kFourChannelsKernel, &kernels->four_channels_));
  RETURN_IF_ERROR(find(kAnyKernel, &kernels->any_));
  return kernels;
}

// Fails only where the process ends and the driver has let go of everything itself.
ImageKernels::~ImageKernels() {
  const gpu::PrimaryContext::Current current(context_);
  if (module_ != nullptr) context_.driver().module_unload(module_);
}

Status ImageKernels::Enqueue(const PixelProgram& program, gpu::DevicePtr images, int64_t count, gpu::DevicePtr out,
                             gpu::Stream stream) const {
  if (count == 0) return {};
  gpu::Function kernel = any_;
  if ((images | out) % kVectorBytes == 0 && IsWhole(program.pixels)) {
    switch (program.channels) {
      case 1: kernel = one_channel_; break;
      case 3: kernel = three_channels_; break;
      case 4: kernel = four_channels_; break;
      default: break;
    }
  }
  const bool quick = kernel != any_;
  const int64_t blocks = count * (quick ? 1 : program.channels) * TilesOf(program.pixels);
  if (blocks > INT32_MAX) {
    return InvalidArgument("images on the GPU: " + std::to_string(count) + " of " + std::to_string(program.pixels) +
                           " pixels need " + std::to_string(blocks) + " blocks, at most " + std::to_string(INT32_MAX) +
                           " can be launched: lower the batch size");
  }
  const unsigned threads = ThreadsFor(program.pixels, quick ? kVectorBytes / ValueBytes(program.result) : 1);
  PixelProgram copied = program;
  void* arguments[] = {&copied, &images, &out};
  const gpu::Driver& driver = context_.driver();
  const gpu::PrimaryContext::Current current(context_);
  return driver.Check(
      driver.launch_kernel(kernel, static_cast<unsigned>(blocks), 1, 1, threads, 1, 1, 0, stream, arguments, nullptr),
      "the image kernels: cuLaunchKernel of " + std::to_string(blocks) + " blocks");
}

}  // namespace headrace::device
