#include "cli/tensor_print.h"

#include <functional>

namespace headrace::cli {
namespace {

// "[0, 1]", or "[0, 1, 2, ..., 7, 8, 9]" with at most `edge` items at either end where `elide`.
std::string List(int64_t size, int64_t edge, bool elide, const std::function<std::string(int64_t)>& item) {
  std::string text = "[";
  for (int64_t i = 0; i < size; ++i) {
    if (i > 0) text += ", ";
    if (elide && size > 2 * edge && i == edge) {
      text += "..., ";
      i = size - edge;
    }
    text += item(i);
  }
  return text + "]";
}

std::string PrintRagged(const TensorView& tensor, const PrintLimits& limits) {
  const int64_t rows = tensor.shape[0];
  int64_t value_count = 1;  // of one value of a row
  for (size_t d = 2; d < tensor.shape.size(); ++d) value_count *= tensor.shape[d];
  const bool elide = tensor.row_splits[rows] * value_count > limits.threshold || rows > limits.threshold;
  // What lies behind dimension `dim` - 1, at `at` of all such.
  const std::function<std::string(size_t, int64_t)> value = [&](size_t dim, int64_t at) {
    if (dim == tensor.shape.size()) return ValueText(tensor, at);
    const int64_t size = tensor.shape[dim];
    return List(size, limits.edge_values, elide, [&](int64_t i) { return value(dim + 1, at * size + i); });
  };
  return List(rows, limits.edge_items, elide, [&](int64_t row) {
    const int64_t begin = tensor.row_splits[row];
    return List(tensor.row_splits[row + 1] - begin, limits.edge_values, elide,
                [&](int64_t i) { return value(2, begin + i); });
  });
}

std::string Shape(const std::vector<int64_t>& shape) {
  std::string text = "(";
  for (size_t d = 0; d < shape.size(); ++d) text += (d > 0 ? ", " : "") + std::to_string(shape[d]);
  return text + (shape.size() == 1 ? ",)" : ")");
}

}  // namespace

std::string PrintTensor(const TensorView& tensor, const PrintLimits& limits) {
  if (tensor.ragged()) return "<tf.RaggedTensor " + PrintRagged(tensor, limits) + ">";
  const std::string array = PrintArray(tensor, limits);
  if (tensor.dtype != DType::kString) return array;
  return "tf.Tensor(" + array + ", shape=" + Shape(tensor.shape) + ", dtype=string)";
}

}  // namespace headrace::cli
