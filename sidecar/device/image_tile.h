// What the image kernel does, thread by thread: uint8 images, channels last, become floats, channels first.
//
// Where a block works, what each of its threads reads and writes, and what becomes of a pixel. The kernels
// (image_kernel.cu) add their threads and a barrier; tests run the same functions for one block and thread after the
// other on the CPU. nvcc takes constexpr functions for the GPU's, too. `Machine` is how the one or the other
// multiplies, adds and rounds.
#pragma once

#include <cstdint>

#include "common/spec/pixel_program.h"

namespace headrace::device {

// What a GPU loads and stores at once.
struct alignas(16) Vector {
  uint32_t words[4];
};
inline constexpr int kVectorBytes = sizeof(Vector);

inline constexpr int kTilePixels = 4096;  // 12 KiB of three channels: several blocks fit beside one another
inline constexpr int kMaxThreads = 256;

// The kernels, by name. Each takes (PixelProgram, images, out). The first three are the quick way, the last is for all
// others.
inline constexpr char kOneChannelKernel[] = "ImagesOfOneChannel";
inline constexpr char kThreeChannelsKernel[] = "ImagesOfThreeChannels";
inline constexpr char kFourChannelsKernel[] = "ImagesOfFourChannels";
inline constexpr char kAnyKernel[] = "ImagesOfAnyKind";

constexpr int64_t TilesOf(int64_t pixels) { return (pixels + kTilePixels - 1) / kTilePixels; }

// Part of one of several fields of `pixels` each: images, or planes of them.
struct Tile {
  int64_t field;
  int64_t first;
  int pixels;  // fewer at a field's end
};
constexpr Tile TileOf(int64_t block, int64_t pixels) {
  const int64_t tiles = TilesOf(pixels);
  const int64_t first = block % tiles * kTilePixels;
  return {block / tiles, first, static_cast<int>(pixels - first < kTilePixels ? pixels - first : kTilePixels)};
}

// Whether images, their planes and all tiles begin at whole vectors, and end there.
constexpr bool IsWhole(int64_t pixels) { return pixels % kVectorBytes == 0; }

constexpr int ValueBytes(DType dtype) { return dtype == DType::kFloat32 ? 4 : 2; }

// The bits of `value`, a float of `Into`, at the low end.
template <typename Machine, DType Into>
constexpr uint32_t BitsOf(float value) {
  if constexpr (Into == DType::kFloat16) return Machine::Float16Of(value);
  if constexpr (Into == DType::kBfloat16) return Machine::Bfloat16Of(value);
  return Machine::BitsOf(value);
}

template <typename Machine, DType Within>
constexpr float Round(float value) {
  if constexpr (Within == DType::kFloat16) return Machine::OfFloat16(Machine::Float16Of(value));
  if constexpr (Within == DType::kBfloat16) return Machine::OfBfloat16(Machine::Bfloat16Of(value));
  return value;
}

// 0 to 255 as a float without a conversion, of which GPUs do few at a time: in 2^23 + value the value is the lowest
// bits.
template <typename Machine>
constexpr float FloatOf(uint32_t value) {
  return Machine::OfBits(0x4b000000U | value) - 8388608.0F;
}

// Puts some values of one channel through the steps.
template <typename Machine, DType Within, int Count>
constexpr void Run(const PixelProgram& program, int channel, float (&values)[Count]) {
  for (int k = 0; k < program.steps; ++k) {
    const float scale = program.scale[k][channel];
    const float offset = program.offset[k][channel];
    for (int i = 0; i < Count; ++i) {
      values[i] = Round<Machine, Within>(Machine::Multiply(values[i], scale));
      values[i] = Round<Machine, Within>(Machine::Add(values[i], offset));
    }
  }
}

// The quick way, for images of 1, 3 or 4 channels whose pixels are whole vectors. First half: the block's threads bring
// the bytes of its tile to `staged`, which all of them see. Neighbours load neighbouring vectors.
template <int Channels>
constexpr void Stage(const Vector* images, int64_t pixels, const Tile& tile, int thread, int threads, Vector* staged) {
  const Vector* const from = images + (tile.field * pixels + tile.first) * Channels / kVectorBytes;
  const int vectors = tile.pixels * Channels / kVectorBytes;
  for (int i = thread; i < vectors; i += threads) staged[i] = from[i];
}

// Second half, once all have done the first: each thread takes the pixels of one vector of each plane, four or eight,
// and writes these. Neighbours write neighbouring vectors.
template <typename Machine, int Channels, DType Within, DType Into>
constexpr void Write(const uint32_t* staged, const PixelProgram& program, const Tile& tile, int thread, int threads,
                     Vector* out) {
  constexpr int kBytes = ValueBytes(Into);
  constexpr int kPixels = kVectorBytes / kBytes;
  constexpr int kWords = kPixels * Channels / 4;
  for (int group = thread; group < tile.pixels / kPixels; group += threads) {
    uint32_t words[kWords] = {};
    for (int w = 0; w < kWords; ++w) words[w] = staged[group * kWords + w];
    for (int c = 0; c < Channels; ++c) {
      float values[kPixels] = {};
      for (int p = 0; p < kPixels; ++p) {
        const int byte = p * Channels + c;
        values[p] = FloatOf<Machine>((words[byte / 4] >> (byte % 4 * 8)) & 0xffU);
      }
      Run<Machine, Within>(program, c, values);
      Vector made = {};
      for (int p = 0; p < kPixels; ++p) {
        made.words[p * kBytes / 4] |= BitsOf<Machine, Into>(values[p]) << (p * kBytes % 4 * 8);
      }
      out[((tile.field * Channels + c) * program.pixels + tile.first) / kPixels + group] = made;
    }
  }
}

// Any other image: a tile of one plane, value by value. `Value` has as many bytes as `Into`.
template <typename Machine, DType Within, DType Into, typename Value>
constexpr void WritePlane(const uint8_t* images, const PixelProgram& program, const Tile& tile, int thread, int threads,
                          Value* out) {
  const int64_t channel = tile.field % program.channels;
  const int64_t first = tile.field / program.channels * program.pixels + tile.first;
  for (int p = thread; p < tile.pixels; p += threads) {
    float value[1] = {FloatOf<Machine>(images[(first + p) * program.channels + channel])};
    Run<Machine, Within>(program, static_cast<int>(channel % PixelProgram::kMaxChannels), value);
    out[tile.field * program.pixels + tile.first + p] = static_cast<Value>(BitsOf<Machine, Into>(value[0]));
  }
}

// Write and WritePlane by the program's types. All threads of a kernel take the same way.
template <typename Machine, int Channels>
constexpr void WriteTile(const uint32_t* staged, const PixelProgram& program, const Tile& tile, int thread, int threads,
                         Vector* out) {
  if (program.within == DType::kFloat16) {
    Write<Machine, Channels, DType::kFloat16, DType::kFloat16>(staged, program, tile, thread, threads, out);
  } else if (program.within == DType::kBfloat16) {
    Write<Machine, Channels, DType::kBfloat16, DType::kBfloat16>(staged, program, tile, thread, threads, out);
  } else if (program.result == DType::kFloat16) {
    Write<Machine, Channels, DType::kFloat32, DType::kFloat16>(staged, program, tile, thread, threads, out);
  } else if (program.result == DType::kBfloat16) {
    Write<Machine, Channels, DType::kFloat32, DType::kBfloat16>(staged, program, tile, thread, threads, out);
  } else {
    Write<Machine, Channels, DType::kFloat32, DType::kFloat32>(staged, program, tile, thread, threads, out);
  }
}
template <typename Machine>
constexpr void WritePlaneTile(const uint8_t* images, const PixelProgram& program, const Tile& tile, int thread,
                              int threads, void* out) {
  if (program.within == DType::kFloat16) {
    WritePlane<Machine, DType::kFloat16, DType::kFloat16>(images, program, tile, thread, threads,
                                                          static_cast<uint16_t*>(out));
  } else if (program.within == DType::kBfloat16) {
    WritePlane<Machine, DType::kBfloat16, DType::kBfloat16>(images, program, tile, thread, threads,
                                                            static_cast<uint16_t*>(out));
  } else if (program.result == DType::kFloat16) {
    WritePlane<Machine, DType::kFloat32, DType::kFloat16>(images, program, tile, thread, threads,
                                                          static_cast<uint16_t*>(out));
  } else if (program.result == DType::kBfloat16) {
    WritePlane<Machine, DType::kFloat32, DType::kBfloat16>(images, program, tile, thread, threads,
                                                           static_cast<uint16_t*>(out));
  } else {
    WritePlane<Machine, DType::kFloat32, DType::kFloat32>(images, program, tile, thread, threads,
                                                          static_cast<uint32_t*>(out));
  }
}

}  // namespace headrace::device
