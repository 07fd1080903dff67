#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "sidecar/device/image_tile.h"

// Loaded by name (images.cc); image_tile.h has all that they do.
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

template <int Channels>
__device__ void WriteBlock(const PixelProgram& program, const Vector* images, Vector* out) {
  __shared__ Vector staged[kTilePixels * Channels / kVectorBytes];
  const Tile tile = TileOf(blockIdx.x, program.pixels);
  const int thread = static_cast<int>(threadIdx.x);
  const int threads = static_cast<int>(blockDim.x);
  Stage<Channels>(images, program.pixels, tile, thread, threads, staged);
  __syncthreads();
  WriteTile<Gpu, Channels>(reinterpret_cast<const uint32_t*>(staged), program, tile, thread, threads, out);
}

}  // namespace

// The program stays where arguments are: a copy of it for each thread would lie in the GPU's memory.
extern "C" {

__global__ void __launch_bounds__(kMaxThreads)
    ImagesOfOneChannel(const __grid_constant__ PixelProgram program, const Vector* images, Vector* out) {
  WriteBlock<1>(program, images, out);
}

__global__ void __launch_bounds__(kMaxThreads)
    ImagesOfThreeChannels(const __grid_constant__ PixelProgram program, const Vector* images, Vector* out) {
  WriteBlock<3>(program, images, out);
}

__global__ void __launch_bounds__(kMaxThreads)
    ImagesOfFourChannels(const __grid_constant__ PixelProgram program, const Vector* images, Vector* out) {
  WriteBlock<4>(program, images, out);
}

__global__ void __launch_bounds__(kMaxThreads)
    ImagesOfAnyKind(const __grid_constant__ PixelProgram program, const uint8_t* images, void* out) {
  WritePlaneTile<Gpu>(images, program, TileOf(blockIdx.x, program.pixels), static_cast<int>(threadIdx.x),
                      static_cast<int>(blockDim.x), out);
}

}  // extern "C"
}  // namespace headrace::device
