// libFuzzer begins with our seeds: they are written into the first folder named on its command line, its corpus.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "tests/fuzz/target.h"

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  for (int i = 1; i < *argc; ++i) {
    const std::filesystem::path corpus = (*argv)[i];
    if (!std::filesystem::is_directory(corpus)) continue;
    int number = 0;
    for (const std::string& seed : headrace::fuzz::Seeds()) {
      std::ofstream(corpus / ("seed-" + std::to_string(number++)), std::ios::binary) << seed;
    }
    break;
  }
  return 0;
}
