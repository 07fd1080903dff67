// What each NAME_fuzz.cc defines: a parser of foreign bytes under test, and where a search for its faults begins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// Takes any bytes; aborts, or is stopped by a sanitizer, where the parser does what it should not. Returns 0.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace headrace::fuzz {

// Good inputs, small, which between them go through all of the parser.
std::vector<std::string> Seeds();
// How many changed seeds ctest tries: some seconds' worth under the sanitizers.
extern const int kMutations;

}  // namespace headrace::fuzz
