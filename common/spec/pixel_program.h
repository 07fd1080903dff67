// What a pixel becomes on its way from uint8, or from float32, to a float: numbers alone, which a GPU takes as well.
#pragma once

#include <cstdint>

#include "common/spec/dtype.h"

namespace headrace {

// Of images [pixels, channels]: each value becomes a float of `within`; in each step it is multiplied and then added
// to, both rounded to `within`; and it is rounded to `result`. Made by ProgramOf (common/spec/pixel_maps.h).
struct PixelProgram {
  static constexpr int kMaxSteps = 3;  // as x / 255, - mean, / deviation
  static constexpr int kMaxChannels = 4;

  DType within = DType::kFloat32;  // float32, float16 or bfloat16
  DType result = DType::kFloat32;  // `within`, or what is shorter
  bool channels_first = false;     // the result is [channels, pixels]
  int64_t pixels = 0;              // of one image
  int64_t channels = 0;            // beyond kMaxChannels all channels are alike
  int steps = 0;
  // By channel & 3. Where a map has none: 1, and -0, which of all numbers changes none that it is added to.
  float scale[kMaxSteps][kMaxChannels] = {};
  float offset[kMaxSteps][kMaxChannels] = {};
};

}  // namespace headrace
