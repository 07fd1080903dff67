// JPEG and PNG, told apart by their first bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "common/base/status.h"

namespace headrace::side {

struct ImageSize {
  int64_t height = 0;
  int64_t width = 0;
};

// Decodes one image after another, with memory that it uses again. Used by one thread.
class ImageDecoder {
 public:
  ImageDecoder();
  ~ImageDecoder();

  // Reads the image's header. It will be decoded with 1 (grey), 3 (RGB) or 4 channels (RGBA; PNG only), as
  // tf.io.decode_image does. `bytes` must stay until it is read. Errors: Corrupt, in words that follow the image's
  // place.
  Result<ImageSize> Open(std::span<const uint8_t> bytes, int channels);
  // Writes the pixels of the image that was opened last: height x width x channels bytes. If the caller will not read
  // them soon, they may pass the caches by. Errors: as above. REQUIRES: not read yet.
  Status Read(uint8_t* pixels, bool read_soon);

 private:
  struct Readers;
  const std::unique_ptr<Readers> readers_;
  bool is_png_ = false;  // the one that was opened last
};

}  // namespace headrace::side
