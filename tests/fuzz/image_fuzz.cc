// Any bytes as an image: pixels of the size that it says, or an error.
#include <cstdlib>
#include <memory>

#include "sidecar/decode/image.h"
#include "tests/fuzz/target.h"
#include "tests/sidecar/images.h"

using namespace headrace::side;

// A few bytes may say that they are an image of tens of megapixels, whose decoding takes a second: of images larger
// than this only the headers are read, so that a search tries thousands of inputs a second.
constexpr int64_t kMostPixels = 1 << 14;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static ImageDecoder decoder;  // also after what was broken
  for (const int channels : {1, 3, 4}) {
    const auto image = decoder.Open({data, size}, channels);
    if (!image.ok() || image->height * image->width > kMostPixels) continue;
    const std::unique_ptr<uint8_t[]> pixels(new uint8_t[static_cast<size_t>(image->height * image->width * channels)]);
    static_cast<void>(decoder.Read(pixels.get(), size % 2 == 0).ok());
  }
  return 0;
}

const int headrace::fuzz::kMutations = 20000;

std::vector<std::string> headrace::fuzz::Seeds() {
  std::vector<uint8_t> pixels(32 * 5 * 3);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * 7);
  // Of 32 in a row each is a whole line.
  return {Jpeg(5, 32, 3, pixels), Jpeg(6, 5, 3, pixels), Jpeg(6, 5, 1, pixels), Png(6, 5, PNG_FORMAT_RGBA, pixels),
          Png(6, 5, PNG_FORMAT_GRAY, pixels)};
}
