#include "cli/tensor_print.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace headrace::cli {
namespace {

std::string Strings(const std::vector<std::string>& strings, std::vector<int64_t> shape) {
  std::string bytes;
  std::vector<int64_t> splits = {0};
  for (const std::string& text : strings) {
    bytes += text;
    splits.push_back(static_cast<int64_t>(bytes.size()));
  }
  return PrintTensor({"x", DType::kString, std::move(shape), bytes.data(), splits.data()});
}

template <typename T>
std::string Ragged(DType dtype, const std::vector<T>& values, const std::vector<int64_t>& splits,
                   const std::vector<int64_t>& inner = {}) {
  std::vector<int64_t> shape = {static_cast<int64_t>(splits.size()) - 1, -1};
  shape.insert(shape.end(), inner.begin(), inner.end());
  return PrintTensor({"x", dtype, shape, values.data(), splits.data()});
}

// Expected texts are those of TensorFlow's print(), with newlines as spaces.
TEST(TensorPrintTest, Strings) {
  EXPECT_EQ(Strings({"a", "b"}, {2}), "tf.Tensor([b'a' b'b'], shape=(2,), dtype=string)");
  EXPECT_EQ(Strings({"", "longer"}, {2}), "tf.Tensor([b'' b'longer'], shape=(2,), dtype=string)");
  EXPECT_EQ(Strings({"alone"}, {}), "tf.Tensor(b'alone', shape=(), dtype=string)");
  EXPECT_EQ(Strings({}, {0}), "tf.Tensor([], shape=(0,), dtype=string)");
  EXPECT_EQ(Strings({"a", "b", "c", "d"}, {2, 2}), "tf.Tensor([[b'a' b'b'] [b'c' b'd']], shape=(2, 2), dtype=string)");
}

TEST(TensorPrintTest, BytesAsPythonWritesThem) {
  const auto prints = [](const std::string& text, const std::string& literal) {
    EXPECT_EQ(Strings({text}, {}), "tf.Tensor(" + literal + ", shape=(), dtype=string)");
  };
  prints("it's", R"(b"it's")");
  prints(R"(it's "so")", R"(b'it\'s "so"')");
  prints("a\\b\t\n\r", R"(b'a\\b\t\n\r')");
  prints(std::string("\0\x7f\xff", 3), R"(b'\x00\x7f\xff')");
  prints(std::string(60, 'x'), "b'" + std::string(60, 'x') + "'");
  prints(std::string(61, 'x'), "b'" + std::string(40, 'x') + "'...");
}

TEST(TensorPrintTest, RaggedRows) {
  EXPECT_EQ(Ragged<int64_t>(DType::kInt64, {1, 2, 3}, {0, 2, 3}), "<tf.RaggedTensor [[1, 2], [3]]>");
  EXPECT_EQ(Ragged<int64_t>(DType::kInt64, {-10, 3}, {0, 0, 2, 2}), "<tf.RaggedTensor [[], [-10, 3], []]>");
  EXPECT_EQ(Ragged<int64_t>(DType::kInt64, {}, {0}), "<tf.RaggedTensor []>");
  EXPECT_EQ(Ragged<uint8_t>(DType::kBool, {1, 0}, {0, 2}), "<tf.RaggedTensor [[True, False]]>");
  EXPECT_EQ(Ragged<float>(DType::kFloat32, {1, 0.5f, 0.1f, 1e-5f, 1e20f, NAN, -INFINITY}, {0, 3, 7}),
            "<tf.RaggedTensor [[1.0, 0.5, 0.1], [1e-05, 1e+20, nan, -inf]]>");
  EXPECT_EQ(Ragged<int32_t>(DType::kInt32, {1, 2, 3, 4}, {0, 2, 2}, {2}), "<tf.RaggedTensor [[[1, 2], [3, 4]], []]>");
}

TEST(TensorPrintTest, ElidesLongRaggedRows) {
  std::vector<int64_t> values(200);
  std::iota(values.begin(), values.end(), 0);
  EXPECT_EQ(Ragged(DType::kInt64, values, {0, 7, 8, 198, 200}),
            "<tf.RaggedTensor [[0, 1, 2, ..., 4, 5, 6], ..., [198, 199]]>");
}

TEST(TensorPrintTest, ArraysOfNumbersAsNumpyPrintsThem) {
  const std::vector<int64_t> values = {0, 1};
  EXPECT_EQ(PrintTensor({"x", DType::kInt64, {2}, values.data()}), "[0 1]");
}

}  // namespace
}  // namespace headrace::cli
