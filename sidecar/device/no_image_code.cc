// Where there is no CUDA Toolkit (image_code.cc is the counterpart).
#include "sidecar/device/image_code.h"

namespace headrace::device {

std::span<const uint8_t> ImageCode() { return {}; }

}  // namespace headrace::device
