// The quick way through pixels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/spec/pixel_program.h"

namespace headrace::side {

// Writes what `program` makes of one image, [pixels, channels], to `out`: the very bits that the maps would, one after
// another. Any alignment.
using QuickPixels = void (*)(const PixelProgram& program, const uint8_t* image, uint8_t* out);

// For this processor, this program and images of type `from`, uint8 or float32; null if there is none.
QuickPixels QuickPixelsFor(const PixelProgram& program, DType from);

}  // namespace headrace::side
