// Any bytes after one that chooses the compression: their content or an error that says where, and nothing touched
// outside.
#include <cstdlib>

#include "sidecar/source/codec.h"
#include "tests/fuzz/target.h"
#include "tests/sidecar/source/compressed.h"
#include "tests/sidecar/source/memory_stream.h"

using namespace headrace;
using namespace headrace::side;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Codec* const codecs[] = {&kGzipCodec, &kZstdCodec, &kLz4Codec, &kBzip2Codec, &kSnappyCodec};
  if (size == 0) return 0;
  const std::string file(reinterpret_cast<const char*>(data) + 1, size - 1);
  CompressedInput input(std::make_unique<MemoryStream>("a", file));
  const auto decompressor = codecs[data[0] % std::size(codecs)]->make();
  static uint8_t out[5000];
  for (size_t total = 0; total < 1 << 20;) {  // a few bytes can stand for any number
    const auto read = decompressor->Read(&input, out, sizeof out);
    if (!read.ok() && read.status().message().find("a: at compressed byte ") != 0) std::abort();
    if (!read.ok() || *read == 0) break;
    if (*read > sizeof out) std::abort();
    total += *read;
  }
  return 0;
}

const int headrace::fuzz::kMutations = 20000;

std::vector<std::string> headrace::fuzz::Seeds() {
  std::string text(70000, 'x');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i % 7 * (i / 1000));
  std::vector<std::string> seeds;
  for (size_t i = 0; i < std::size(kWriters); ++i) {
    const auto choice = static_cast<char>(i);
    seeds.push_back(choice + kWriters[i].compress("hello") + kWriters[i].compress(text));
    seeds.push_back(choice + SkippableFrame("x") + kWriters[i].compress("hello hello hello hello"));
  }
  return seeds;
}
