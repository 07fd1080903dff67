// Any bytes as an image: pixels of the size that it says, or an error.
#include <cstdlib>

#include "sidecar/decode/image.h"

using namespace headrace::side;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Image image;
  for (const int channels : {1, 3, 4}) {
    if (!DecodeImage({data, size}, channels, &image).ok()) continue;
    if (image.pixels.size() != static_cast<size_t>(image.height * image.width * channels)) std::abort();
  }
  return 0;
}

#ifndef HEADRACE_LIBFUZZER
#include "tests/fuzz/mutate.h"
#include "tests/sidecar/images.h"

int main() {
  std::vector<uint8_t> pixels(6 * 5 * 4);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * 7);
  headrace::fuzz::Mutate({Jpeg(6, 5, 3, pixels), Jpeg(6, 5, 1, pixels), Png(6, 5, PNG_FORMAT_RGBA, pixels),
                          Png(6, 5, PNG_FORMAT_GRAY, pixels)},
                         20000);
  return 0;
}
#endif
