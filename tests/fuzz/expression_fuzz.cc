// Any text as a filter's expression: nodes that refer to earlier nodes and to values that are there, or an error.
#include <cstdlib>

#include "common/spec/expression.h"
#include "tests/fuzz/target.h"

using namespace headrace;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::vector<TensorSpec> components = {
      {"a", DType::kInt64, {}}, {"x", DType::kFloat32, {2, 3}}, {"b/c", DType::kBool, {}}, {"h", DType::kFloat16, {}}};
  const auto expression = Expression::Parse(std::string(reinterpret_cast<const char*>(data), size), components);
  if (!expression.ok()) {
    if (expression.status().message().find("at column ") != 0) std::abort();
    return 0;
  }
  const std::vector<Expression::Node>& nodes = expression->nodes();
  if (nodes.empty() || nodes.back().type != Expression::Type::kBool) std::abort();
  for (int i = 0; i < static_cast<int>(nodes.size()); ++i) {
    const Expression::Node& node = nodes[static_cast<size_t>(i)];
    if (node.left >= i || node.right >= i) std::abort();
    if (node.op == Expression::Op::kLoad && (node.component > 3 || node.value > 5)) std::abort();
  }
  return 0;
}

const int headrace::fuzz::kMutations = 100000;

std::vector<std::string> headrace::fuzz::Seeds() {
  return {"a < 5 && (x[0][1] >= 0.5 || !`b/c`)", "-a * 2 + 1 % 3 != x[1][2] / h", "!!!(((true))) == (h>1e-3)"};
}
