// JPEG and PNG, told apart by their first bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace headrace::side {

struct Image {
  int64_t height = 0;
  int64_t width = 0;
  std::vector<uint8_t> pixels;  // height x width x channels
};

// Decodes into `image`, whose memory it uses again, with 1 (grey), 3 (RGB) or 4 channels (RGBA; PNG only), as
// tf.io.decode_image does. Errors: Corrupt, in words that follow the image's place.
Status DecodeImage(std::span<const uint8_t> bytes, int channels, Image* image);

}  // namespace headrace::side
