// main() of the fuzz targets where there is no libFuzzer: good inputs changed by a fixed seed, so that ctest runs the
// same ones each time.
#include <cstring>
#include <random>

#include "tests/fuzz/target.h"

int main() {
  using headrace::fuzz::kMutations;
  const std::vector<std::string> seeds = headrace::fuzz::Seeds();
  std::mt19937_64 random(42);
  const uint64_t interesting[] = {0,   1,   2,    8,    10,       63,           64,        127,
                                  128, 255, 4095, 4096, 1u << 31, ~uint64_t{0}, 1ull << 63};
  for (int run = 0; run < kMutations; ++run) {
    std::string input = seeds[random() % seeds.size()];
    for (uint64_t change = random() % 5; change > 0 && !input.empty(); --change) {
      const size_t at = random() % input.size();
      const uint64_t value = random() % 2 == 0 ? interesting[random() % std::size(interesting)] : random();
      switch (random() % 4) {
        case 0: input[at] = static_cast<char>(value); break;
        case 1: {  // a word where words lie
          const size_t word = at / sizeof value * sizeof value;
          std::memcpy(&input[word], &value, std::min(sizeof value, input.size() - word));
          break;
        }
        case 2: input.resize(at); break;
        default: input.insert(at, input.substr(random() % input.size(), random() % 9)); break;
      }
    }
    // A copy of just that size on the heap, so that a sanitizer sees one byte too far.
    const std::vector<uint8_t> bytes(input.begin(), input.end());
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
  return 0;
}
