// Any bytes as a file of Arrow's IPC format, and as a stream of it: rows or an error, and nothing touched outside.
#include "sidecar/source/arrow_ipc.h"
#include "tests/fuzz/columns.h"
#include "tests/fuzz/table_seeds.h"
#include "tests/fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace::fuzz;
  static const std::string path = "fuzz";
  const std::span bytes(data, size);
  ReadAll(OpenArrowFile(std::make_unique<MemoryFile>(bytes), nullptr, &path), size);
  ReadAll(OpenArrowFile(std::make_unique<MemoryFile>(bytes), std::make_unique<MemoryStream>(bytes), &path), size + 1);
  ReadAll(OpenArrowStream(std::make_unique<MemoryStream>(bytes), &path), size);
  return 0;
}

const int headrace::fuzz::kMutations = 10000;

std::vector<std::string> headrace::fuzz::Seeds() { return headrace::fuzz::ArrowSeeds(); }
