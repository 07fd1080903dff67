// Any bytes as a Parquet file: rows or an error, and nothing touched outside.
#include "sidecar/source/parquet.h"
#include "tests/fuzz/columns.h"
#include "tests/fuzz/table_seeds.h"
#include "tests/fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace::fuzz;
  static const std::string path = "fuzz";
  ReadAll(OpenParquet(std::make_unique<MemoryFile>(std::span(data, size)), &path), size);
  return 0;
}

const int headrace::fuzz::kMutations = 20000;

std::vector<std::string> headrace::fuzz::Seeds() { return headrace::fuzz::ParquetSeeds(); }
