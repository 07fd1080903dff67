// Any bytes as a Parquet file: rows or an error, and nothing touched outside.
#include "sidecar/source/parquet.h"
#include "tests/fuzz/columns.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace::fuzz;
  static const std::string path = "fuzz";
  ReadAll(OpenParquet(std::make_unique<MemoryFile>(std::span(data, size)), &path), size);
  return 0;
}

#ifndef HEADRACE_LIBFUZZER
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/table_seeds.h"

int main() {
  headrace::fuzz::Mutate(headrace::fuzz::ParquetSeeds(), 20000);
  return 0;
}
#endif
