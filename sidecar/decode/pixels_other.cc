// Processors without AVX2 have no quick way through pixels.
#include "sidecar/decode/pixels_quick.h"

namespace headrace::side {

QuickPixels QuickPixelsFor(const PixelProgram&, DType) { return nullptr; }

}  // namespace headrace::side
