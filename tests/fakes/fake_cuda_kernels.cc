// The stand-in driver's kernels: those of sidecar/device/image_kernel.cu, by their names. What they do is compiled from
// the same functions (sidecar/device/image_tile.h), and runs when the stream comes to it, one block and thread after
// the other.
//
// It refuses code that nvcc did not make, names that the code has not, functions of code that was unloaded, grids,
// blocks and arguments that no kernel can have, vectors that are not aligned, and memory that is not all there when the
// kernel runs.
//
// $FAKE_CUDA_OLD: set if the driver is older than the code that it is to load.
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "tests/fakes/fake_cuda_state.h"
#include "tests/sidecar/device/image_cpu.h"

using namespace headrace::gpu;        // NOLINT(google-build-using-namespace): the driver's types, all over this file
using namespace headrace::gpu::fake;  // NOLINT(google-build-using-namespace)
namespace device = headrace::device;

namespace {

constexpr uint32_t kFatbinMagic = 0xBA55ED50;

// In their order, the channels of images.
struct Kernel {
  std::string_view name;
  int channels;  // 0: any
};
constexpr Kernel kKernels[] = {
    {device::kOneChannelKernel, 1},
    {device::kThreeChannelsKernel, 3},
    {device::kFourChannelsKernel, 4},
    {device::kAnyKernel, 0},
};

struct Launch {
  int channels;  // of the kernel
  headrace::PixelProgram program;
  DevicePtr images;
  DevicePtr out;
  int64_t blocks;
  int threads;

  bool quick() const { return channels != 0; }
  int64_t count() const { return blocks / (device::TilesOf(program.pixels) * (quick() ? 1 : program.channels)); }
  size_t bytes() const { return static_cast<size_t>(count() * program.pixels * program.channels); }
  size_t value_bytes() const { return static_cast<size_t>(device::ValueBytes(program.result)); }
};

// What is wrong with it; null: nothing.
const char* WrongWith(const Launch& launch) {
  const headrace::PixelProgram& program = launch.program;
  if (program.pixels <= 0 || program.channels <= 0 || !program.channels_first || program.steps < 0 ||
      program.steps > headrace::PixelProgram::kMaxSteps) {
    return "cuLaunchKernel with no program";
  }
  if (launch.blocks != launch.count() * (launch.quick() ? 1 : program.channels) * device::TilesOf(program.pixels)) {
    return "cuLaunchKernel of a grid that is not of whole images";
  }
  if (!launch.quick()) return nullptr;
  if (program.channels != launch.channels || !device::IsWhole(program.pixels)) {
    return "cuLaunchKernel of a kernel for other images";
  }
  return nullptr;
}

void Run(const Launch& launch) {
  uint8_t* images = nullptr;
  uint8_t* out = nullptr;
  {
    const std::lock_guard lock(TheFake().mutex);
    images = Storage(launch.images, launch.bytes());
    out = Storage(launch.out, launch.bytes() * launch.value_bytes());
    if (images == nullptr || out == nullptr) {
      Refuse(kErrorIllegalAddress, "a kernel found its memory freed, unmapped or too short");
      return;
    }
  }
  for (int64_t block = 0; block < launch.blocks; ++block) {
    if (block == launch.blocks / 2) PauseInTheMiddle();
    device::RunImageBlock(launch.channels, launch.program, block, launch.threads, images, out);
  }
}

// The function's module, which knows it; null if none does any more.
Module ModuleOf(Function function) {
  for (const Module module : TheFake().modules) {
    for (const auto& known : module->functions) {
      if (known.get() == function) return module;
    }
  }
  return nullptr;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the driver's names
extern "C" {

Error cuModuleLoadData(Module* module, const void* code) {
  const std::lock_guard lock(TheFake().mutex);
  if (const Error error = CheckReady("cuModuleLoadData")) return error;
  uint32_t magic = 0;
  if (code != nullptr) std::memcpy(&magic, code, sizeof(magic));
  if (magic != kFatbinMagic) return Refuse(kErrorInvalidImage, "cuModuleLoadData of what is no code");
  if (std::getenv("FAKE_CUDA_OLD") != nullptr) return kErrorUnsupportedPtxVersion;
  *module = new CUmod_st;
  TheFake().modules.insert(*module);
  TheFake().counts.modules += 1;
  return kSuccess;
}

Error cuModuleUnload(Module module) {
  const std::lock_guard lock(TheFake().mutex);
  if (const Error error = CheckReady("cuModuleUnload")) return error;
  if (TheFake().modules.erase(module) == 0) return Refuse(kErrorInvalidHandle, "a module unloaded twice");
  TheFake().counts.modules -= 1;
  delete module;
  return kSuccess;
}

Error cuModuleGetFunction(Function* function, Module module, const char* name) {
  const std::lock_guard lock(TheFake().mutex);
  if (const Error error = CheckReady("cuModuleGetFunction")) return error;
  if (TheFake().modules.count(module) == 0) return Refuse(kErrorInvalidHandle, "cuModuleGetFunction of no module");
  for (const Kernel& kernel : kKernels) {
    if (kernel.name != name) continue;
    module->functions.push_back(std::make_unique<CUfunc_st>(CUfunc_st{kernel.channels}));
    *function = module->functions.back().get();
    return kSuccess;
  }
  return Refuse(kErrorNotFound, "cuModuleGetFunction of a name that the code has not");
}

Error cuLaunchKernel(Function function, unsigned blocks_x, unsigned blocks_y, unsigned blocks_z, unsigned threads_x,
                     unsigned threads_y, unsigned threads_z, unsigned shared_bytes, Stream handle, void** arguments,
                     void** extra) {
  const std::lock_guard lock(TheFake().mutex);
  if (const Error error = CheckReady("cuLaunchKernel")) return error;
  const Stream stream = Find(handle);
  if (stream == nullptr) return Refuse(kErrorInvalidHandle, "cuLaunchKernel on a stream that is not there");
  if (ModuleOf(function) == nullptr) return Refuse(kErrorInvalidHandle, "cuLaunchKernel of no function");
  // The kernels are written for one dimension, and for blocks of whole warps.
  if (blocks_x == 0 || blocks_x > INT32_MAX || blocks_y != 1 || blocks_z != 1 || threads_x == 0 ||
      threads_x % 32 != 0 || threads_y != 1 || threads_z != 1) {
    return Refuse(kErrorInvalidValue, "cuLaunchKernel of a grid that cannot be");
  }
  if (threads_x > unsigned{device::kMaxThreads} || shared_bytes != 0) {
    return Refuse(kErrorLaunchOutOfResources, "cuLaunchKernel of more than the kernel's launch bounds");
  }
  if (arguments == nullptr || extra != nullptr) return Refuse(kErrorInvalidValue, "cuLaunchKernel without arguments");
  Launch launch{};
  launch.channels = function->kernel;
  std::memcpy(&launch.program, arguments[0], sizeof(launch.program));
  std::memcpy(&launch.images, arguments[1], sizeof(launch.images));
  std::memcpy(&launch.out, arguments[2], sizeof(launch.out));
  launch.blocks = blocks_x;
  launch.threads = static_cast<int>(threads_x);
  if (const char* const wrong = WrongWith(launch)) return Refuse(kErrorInvalidValue, wrong);
  const size_t unit = launch.quick() ? size_t{device::kVectorBytes} : launch.value_bytes();
  if (launch.out % unit != 0 || (launch.quick() && launch.images % unit != 0)) {
    return Refuse(kErrorMisalignedAddress, "a kernel whose memory is not aligned");
  }
  TheFake().counts.launches += 1;
  Enqueue(stream, [launch] { Run(launch); });
  return kSuccess;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
