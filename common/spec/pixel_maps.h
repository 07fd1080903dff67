// Runs of maps that are done in one pass: images that are cast, scaled, and brought from channels last to channels
// first.
#pragma once

#include <optional>
#include <vector>

#include "common/spec/pixel_program.h"
#include "common/spec/plan.h"

namespace headrace {

// Maps of one component, uint8 or float32: casts, scales and offsets, and transposes that together change nothing, or
// bring the last dimension to the front. The component is [pixels, channels], whatever dimensions the pixels have.
struct PixelMaps {
  static constexpr int64_t kMaxDiffering = 64;

  std::vector<size_t> stages;        // of spec.pipeline, rising; of the maps, only the first can have `as`
  std::vector<MapOperation> values;  // the casts, scales and offsets, which mean the same before and after a transpose
  TensorSpec input;                  // of one record
  TensorSpec output;
  int64_t pixels = 1;
  int64_t channels = 1;
  bool by_channel = false;      // channels differ in scale or offset; there are at most kMaxDiffering then
  bool channels_first = false;  // the result is [channels, pixels]
};

// The longest such run that begins with the map at `first`, of the first `stages` transformations. Between its maps
// there may be maps of other components, and what changes no component.
std::optional<PixelMaps> FindPixelMaps(const InputSpec& spec, size_t first, size_t stages);

// The run as a program; none where it is more than one can hold.
std::optional<PixelProgram> ProgramOf(const PixelMaps& maps);

}  // namespace headrace
