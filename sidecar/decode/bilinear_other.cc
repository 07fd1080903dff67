// Processors without AVX2 have no quicker way.
#include "sidecar/decode/bilinear.h"

namespace headrace::side {

Bilinear BilinearFor() { return PlainBilinear(); }

}  // namespace headrace::side
