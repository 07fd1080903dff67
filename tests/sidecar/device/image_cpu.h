// The image kernels on the CPU, block by block and thread by thread.
#pragma once

#include <bit>
#include <vector>

#include "common/base/half.h"
#include "sidecar/device/image_tile.h"

namespace headrace::device {

// How a CPU calculates.
struct Cpu {
  static float Multiply(float a, float b) { return a * b; }
  static float Add(float a, float b) { return a + b; }
  static uint32_t BitsOf(float value) { return std::bit_cast<uint32_t>(value); }
  static float OfBits(uint32_t bits) { return std::bit_cast<float>(bits); }
  static uint16_t Float16Of(float value) { return ToFloat16(value); }
  static float OfFloat16(uint16_t bits) { return FromFloat16(bits); }
  static uint16_t Bfloat16Of(float value) { return ToBfloat16(value); }
  static float OfBfloat16(uint16_t bits) { return FromBfloat16(bits); }
};

// One block of the kernel of `channels`: 1, 3 or 4, or 0 for the one of any images. Of the quick ones REQUIRES that
// both places are aligned to vectors.
template <int Channels>
void RunQuickBlock(const PixelProgram& program, int64_t block, int threads, const uint8_t* images, uint8_t* out) {
  const Tile tile = TileOf(block, program.pixels);
  std::vector<Vector> staged(kTilePixels * Channels / kVectorBytes);
  for (int thread = 0; thread < threads; ++thread) {
    Stage<Channels>(reinterpret_cast<const Vector*>(images), program.pixels, tile, thread, threads, staged.data());
  }
  for (int thread = 0; thread < threads; ++thread) {
    WriteTile<Cpu, Channels>(reinterpret_cast<const uint32_t*>(staged.data()), program, tile, thread, threads,
                             reinterpret_cast<Vector*>(out));
  }
}
inline void RunImageBlock(int channels, const PixelProgram& program, int64_t block, int threads, const uint8_t* images,
                          uint8_t* out) {
  switch (channels) {
    case 1: return RunQuickBlock<1>(program, block, threads, images, out);
    case 3: return RunQuickBlock<3>(program, block, threads, images, out);
    case 4: return RunQuickBlock<4>(program, block, threads, images, out);
    default: break;
  }
  const Tile tile = TileOf(block, program.pixels);
  for (int thread = 0; thread < threads; ++thread) {
    WritePlaneTile<Cpu>(images, program, tile, thread, threads, out);
  }
}

}  // namespace headrace::device
