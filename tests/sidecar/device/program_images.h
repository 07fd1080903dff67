// Programs of pixels, and what they make of images: one value after the other, by arithmetic alone.
#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "common/base/half.h"
#include "common/spec/pixel_program.h"

namespace headrace::device {

inline float RoundedTo(DType dtype, float value) {
  if (dtype == DType::kFloat16) return FromFloat16(ToFloat16(value));
  if (dtype == DType::kBfloat16) return FromBfloat16(ToBfloat16(value));
  return value;
}

// x / 255, - mean, / deviation: channels first, each with numbers of its own up to the fourth.
inline PixelProgram Photographs(int64_t pixels, int64_t channels, DType within, DType result) {
  constexpr double kMean[] = {0.485, 0.456, 0.406, 0.5};
  constexpr double kDeviation[] = {0.229, 0.224, 0.225, 0.25};
  PixelProgram program{within, result, true, pixels, channels, 3};
  for (size_t c = 0; c < PixelProgram::kMaxChannels; ++c) {
    const size_t of = channels > PixelProgram::kMaxChannels ? 0 : c;
    program.scale[0][c] = RoundedTo(within, static_cast<float>(1 / 255.0));
    program.offset[0][c] = -0.0F;
    program.scale[1][c] = 1;
    program.offset[1][c] = RoundedTo(within, static_cast<float>(-kMean[of]));
    program.scale[2][c] = RoundedTo(within, static_cast<float>(1 / kDeviation[of]));
    program.offset[2][c] = -0.0F;
  }
  return program;
}

inline std::vector<uint8_t> RandomImages(const PixelProgram& program, int64_t count, uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::vector<uint8_t> images(static_cast<size_t>(count * program.pixels * program.channels));
  for (uint8_t& value : images) value = static_cast<uint8_t>(random());
  return images;
}

// The bytes of what the program makes of `images`.
inline std::vector<uint8_t> Made(const PixelProgram& program, const std::vector<uint8_t>& images) {
  const auto pixels = static_cast<size_t>(program.pixels);
  const auto channels = static_cast<size_t>(program.channels);
  const size_t value_bytes = program.result == DType::kFloat32 ? 4 : 2;
  std::vector<uint8_t> made(images.size() * value_bytes);
  for (size_t i = 0; i < images.size(); ++i) {
    const size_t image = i / (pixels * channels);
    const size_t pixel = i / channels % pixels;
    const size_t channel = i % channels;
    auto value = static_cast<float>(images[i]);
    for (int k = 0; k < program.steps; ++k) {
      value = RoundedTo(program.within, value * program.scale[k][channel % PixelProgram::kMaxChannels]);
      value = RoundedTo(program.within, value + program.offset[k][channel % PixelProgram::kMaxChannels]);
    }
    uint8_t* const to = made.data() + ((image * channels + channel) * pixels + pixel) * value_bytes;
    const uint16_t bits = program.result == DType::kFloat16 ? ToFloat16(value) : ToBfloat16(value);
    std::memcpy(to, program.result == DType::kFloat32 ? static_cast<const void*>(&value) : &bits, value_bytes);
  }
  return made;
}

}  // namespace headrace::device
