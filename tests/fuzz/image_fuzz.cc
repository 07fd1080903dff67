// Any bytes as an image: pixels of the size that it says, or an error.
#include <cstdlib>
#include <memory>

#include "sidecar/decode/image.h"
#include "tests/fuzz/target.h"
#include "tests/sidecar/images.h"

using namespace headrace::side;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static ImageDecoder decoder;  // also after what was broken
  for (const int channels : {1, 3, 4}) {
    const auto image = decoder.Open({data, size}, channels);
    if (!image.ok()) continue;
    const std::unique_ptr<uint8_t[]> pixels(new uint8_t[static_cast<size_t>(image->height * image->width * channels)]);
    static_cast<void>(decoder.Read(pixels.get()).ok());
  }
  return 0;
}

const int headrace::fuzz::kMutations = 20000;

std::vector<std::string> headrace::fuzz::Seeds() {
  std::vector<uint8_t> pixels(6 * 5 * 4);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * 7);
  return {Jpeg(6, 5, 3, pixels), Jpeg(6, 5, 1, pixels), Png(6, 5, PNG_FORMAT_RGBA, pixels),
          Png(6, 5, PNG_FORMAT_GRAY, pixels)};
}
