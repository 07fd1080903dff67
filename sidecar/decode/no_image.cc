// Where the parts that need a GPU are built alone (image.cc is the counterpart).
#include "sidecar/decode/image.h"

namespace headrace::side {

struct ImageDecoder::Readers {};

ImageDecoder::ImageDecoder() = default;
ImageDecoder::~ImageDecoder() = default;
Result<ImageSize> ImageDecoder::Open(std::span<const uint8_t>, int) {
  is_png_ = false;
  return Corrupt(
      "is not decoded: this build has neither JPEG nor PNG, since it is of the parts that need a GPU alone; "
      "use images that are stored as their pixels");
}
Status ImageDecoder::Read(uint8_t*, bool) { return Corrupt("is not decoded: this build has neither JPEG nor PNG"); }

}  // namespace headrace::side
