// A main() for fuzz targets where the compiler has no libFuzzer: mutates good inputs with a fixed seed, so that ctest
// runs the same inputs each time.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace headrace::fuzz {

inline void Mutate(const std::vector<std::string>& seeds, int runs) {
  std::mt19937_64 random(42);
  const uint8_t interesting[] = {0, 1, 2, 8, 10, 0x7f, 0x80, 0xff};
  for (int run = 0; run < runs; ++run) {
    std::string input = seeds[random() % seeds.size()];
    for (uint64_t change = random() % 5; change > 0 && !input.empty(); --change) {
      const size_t at = random() % input.size();
      switch (random() % 4) {
        case 0: input[at] = static_cast<char>(random()); break;
        case 1: input[at] = static_cast<char>(interesting[random() % 8]); break;
        case 2: input.resize(at); break;
        default: input.insert(at, input.substr(random() % input.size(), random() % 9)); break;
      }
    }
    // A copy of just that size on the heap, so that a sanitizer sees one byte too far.
    const std::vector<uint8_t> bytes(input.begin(), input.end());
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
}

}  // namespace headrace::fuzz
