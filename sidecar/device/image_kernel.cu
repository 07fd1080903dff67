#include "sidecar/device/image_kernel.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "sidecar/device/image_tile.h"

namespace headrace::device {
namespace {

// How a GPU calculates. The intrinsics round to nearest and are never joined to one operation.
struct Gpu {
  static __device__ float Multiply(float a, float b) { return __fmul_rn(a, b); }
  static __device__ float Add(float a, float b) { return __fadd_rn(a, b); }
  static __device__ uint32_t BitsOf(float value) { return __float_as_uint(value); }
  static __device__ float OfBits(uint32_t bits) { return __uint_as_float(bits); }
  static __device__ uint16_t Float16Of(float value) { return __half_as_ushort(__float2half_rn(value)); }
  static __device__ float OfFloat16(uint16_t bits) { return __half2float(__ushort_as_half(bits)); }
  static __device__ uint16_t Bfloat16Of(float value) { return __bfloat16_as_ushort(__float2bfloat16_rn(value)); }
  static __device__ float OfBfloat16(uint16_t bits) { return __bfloat162float(__ushort_as_bfloat16(bits)); }
};

template <int Channels, DType Within, DType Into>
__global__ void __launch_bounds__(kMaxThreads) QuickKernel(PixelProgram program, const Vector* images, Vector* out) {
  __shared__ Vector staged[kTilePixels * Channels / kVectorBytes];
  const Tile tile = TileOf(blockIdx.x, program.pixels);
  const int thread = static_cast<int>(threadIdx.x);
  const int threads = static_cast<int>(blockDim.x);
  Stage<Channels>(images, program.pixels, tile, thread, threads, staged);
  __syncthreads();
  Write<Gpu, Channels, Within, Into>(reinterpret_cast<const uint32_t*>(staged), program, tile, thread, threads, out);
}

template <DType Within, DType Into, typename Value>
__global__ void __launch_bounds__(kMaxThreads) PlaneKernel(PixelProgram program, const uint8_t* images, Value* out) {
  WritePlane<Gpu, Within, Into>(images, program, TileOf(blockIdx.x, program.pixels), static_cast<int>(threadIdx.x),
                                static_cast<int>(blockDim.x), out);
}

struct Launch {
  const PixelProgram& program;
  const void* images;
  int64_t count;
  void* out;
  cudaStream_t stream;
};

// Threads for the groups of pixels that a tile holds, in whole warps.
unsigned Threads(int64_t pixels, int64_t pixels_of_group) {
  constexpr int64_t kWarp = 32;
  const int64_t tile = pixels < kTilePixels ? pixels : int64_t{kTilePixels};
  const int64_t threads = (tile / pixels_of_group + kWarp - 1) / kWarp * kWarp;
  return static_cast<unsigned>(threads < kMaxThreads ? threads : int64_t{kMaxThreads});
}

template <int Channels, DType Within, DType Into>
void LaunchQuick(const Launch& launch) {
  const int64_t pixels = launch.program.pixels;
  const auto blocks = static_cast<unsigned>(launch.count * TilesOf(pixels));
  QuickKernel<Channels, Within, Into><<<blocks, Threads(pixels, kVectorBytes / ValueBytes(Into)), 0, launch.stream>>>(
      launch.program, static_cast<const Vector*>(launch.images), static_cast<Vector*>(launch.out));
}

template <DType Within, DType Into>
void LaunchPlanes(const Launch& launch) {
  const int64_t pixels = launch.program.pixels;
  const auto blocks = static_cast<unsigned>(launch.count * launch.program.channels * TilesOf(pixels));
  const unsigned threads = Threads(pixels, 1);
  const auto* const images = static_cast<const uint8_t*>(launch.images);
  if constexpr (ValueBytes(Into) == 4) {
    PlaneKernel<Within, Into>
        <<<blocks, threads, 0, launch.stream>>>(launch.program, images, static_cast<uint32_t*>(launch.out));
  } else {
    PlaneKernel<Within, Into>
        <<<blocks, threads, 0, launch.stream>>>(launch.program, images, static_cast<uint16_t*>(launch.out));
  }
}

template <DType Within, DType Into>
void LaunchFor(const Launch& launch) {
  const auto places = reinterpret_cast<uintptr_t>(launch.images) | reinterpret_cast<uintptr_t>(launch.out);
  const bool whole = places % kVectorBytes == 0 && IsWhole(launch.program.pixels);
  const int64_t channels = whole ? launch.program.channels : 0;
  switch (channels) {
    case 1: return LaunchQuick<1, Within, Into>(launch);
    case 3: return LaunchQuick<3, Within, Into>(launch);
    case 4: return LaunchQuick<4, Within, Into>(launch);
    default: return LaunchPlanes<Within, Into>(launch);
  }
}

}  // namespace

cudaError_t LaunchImageKernel(const PixelProgram& program, const void* images, int64_t count, void* out,
                              cudaStream_t stream) {
  constexpr DType kFloat32 = DType::kFloat32;
  constexpr DType kFloat16 = DType::kFloat16;
  constexpr DType kBfloat16 = DType::kBfloat16;
  const Launch launch{program, images, count, out, stream};
  // Blocks are numbered in 31 bits.
  if (count * program.channels * TilesOf(program.pixels) > INT32_MAX) return cudaErrorInvalidConfiguration;
  if (count == 0) return cudaSuccess;
  if (program.within == kFloat16) {
    LaunchFor<kFloat16, kFloat16>(launch);
  } else if (program.within == kBfloat16) {
    LaunchFor<kBfloat16, kBfloat16>(launch);
  } else if (program.result == kFloat16) {
    LaunchFor<kFloat32, kFloat16>(launch);
  } else if (program.result == kBfloat16) {
    LaunchFor<kFloat32, kBfloat16>(launch);
  } else {
    LaunchFor<kFloat32, kFloat32>(launch);
  }
  return cudaGetLastError();
}

}  // namespace headrace::device
