// Any text as what a loader and a function's process say: a message whose tensors a ring can hold, or an error.
#include <cstdlib>

#include "common/ring/function_wire.h"
#include "common/ring/layout.h"
#include "tests/fuzz/target.h"

using namespace headrace;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto answer = ring::DecodeFunctionAnswer(text);
  if (answer.ok()) {
    if (const auto* element = std::get_if<ring::Element>(&*answer)) {
      for (const TensorSpec& tensor : element->tensors) {
        if (tensor.shape.size() > static_cast<size_t>(ring::kMaxDims)) std::abort();
        for (const int64_t dim : tensor.shape) {
          if (dim < 0) std::abort();
        }
      }
    }
    if (!ring::DecodeFunctionAnswer(ring::Encode(*answer)).ok()) std::abort();
  }
  const auto request = ring::DecodeFunctionRequest(text);
  if (request.ok() && !ring::DecodeFunctionRequest(ring::Encode(*request)).ok()) std::abort();
  return 0;
}

const int headrace::fuzz::kMutations = 20000;

std::vector<std::string> headrace::fuzz::Seeds() {
  return {R"({"version":1,"start":{"epoch":0,"numWorkers":2,"workerIndex":1,"replicasPerWorker":2}})",
          R"({"version":1,"write":{"replica":0,"offsets":[4096,8192]}})",
          R"({"version":1,"started":{"elementSpec":[{"name":"x","dtype":"int8","shape":[-1,3]}],"cardinality":-2}})",
          R"({"version":1,"element":[{"name":"x","dtype":"float32","shape":[2,3]}]})",
          R"({"version":1,"error":"Corrupt: no"})"};
}
