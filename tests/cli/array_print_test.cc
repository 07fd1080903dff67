#include "cli/array_print.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace headrace::cli {
namespace {

template <typename T>
std::string Print(DType dtype, const std::vector<T>& values, std::vector<int64_t> shape) {
  return PrintArray({"x", dtype, std::move(shape), values.data()});
}

std::string PrintFloats(const std::vector<float>& values) {
  return Print(DType::kFloat32, values, {static_cast<int64_t>(values.size())});
}

// Expected texts are numpy 1.24's str() of the same arrays, with newlines as spaces.
TEST(ArrayPrintTest, Integers) {
  EXPECT_EQ(Print<int64_t>(DType::kInt64, {0, 1}, {2}), "[0 1]");
  EXPECT_EQ(Print<int64_t>(DType::kInt64, {0, -1, 10}, {3}), "[ 0 -1 10]");
  EXPECT_EQ(Print<uint8_t>(DType::kUint8, {0, 255}, {2}), "[  0 255]");
  EXPECT_EQ(Print<int64_t>(DType::kInt64, {7}, {}), "7");
  EXPECT_EQ(Print<uint64_t>(DType::kUint64, {18446744073709551615u}, {1}), "[18446744073709551615]");
  EXPECT_EQ(Print<uint8_t>(DType::kBool, {1, 0}, {2}), "[ True False]");
}

TEST(ArrayPrintTest, Floats) {
  EXPECT_EQ(PrintFloats({1, 0.5}), "[1.  0.5]");
  EXPECT_EQ(PrintFloats({0, 5, 13}), "[ 0.  5. 13.]");
  EXPECT_EQ(PrintFloats({0.5f, 100.25f}), "[  0.5  100.25]");
  EXPECT_EQ(PrintFloats({NAN, 1, INFINITY}), "[nan  1. inf]");
  EXPECT_EQ(PrintFloats({1.0f / 3}), "[0.33333334]");
  EXPECT_EQ(Print<double>(DType::kFloat64, {1.0 / 3}, {1}), "[0.33333333]");
  EXPECT_EQ(Print<uint16_t>(DType::kFloat16, {0x3C00, 0xB800}, {2}), "[ 1.  -0.5]");
  EXPECT_EQ(Print<uint16_t>(DType::kBfloat16, {0x3F80}, {1}), "[1.]");
}

TEST(ArrayPrintTest, FarApartFloatsHaveExponents) {
  EXPECT_EQ(PrintFloats({0.1f, 100.25f}), "[1.0000e-01 1.0025e+02]");
  EXPECT_EQ(PrintFloats({1e-5f, 1}), "[1.e-05 1.e+00]");
  EXPECT_EQ(PrintFloats({1e9f, 1}), "[1.e+09 1.e+00]");
}

TEST(ArrayPrintTest, Matrices) {
  EXPECT_EQ(Print<float>(DType::kFloat32, {1, 2, 3, 4}, {2, 2}), "[[1. 2.] [3. 4.]]");
  EXPECT_EQ(Print<int64_t>(DType::kInt64, {}, {0}), "[]");
  EXPECT_EQ(Print<float>(DType::kFloat32, {}, {0, 64}), "[]");
}

TEST(ArrayPrintTest, ElidesLargeTensors) {
  std::vector<int64_t> values(200);
  std::iota(values.begin(), values.end(), 0);
  EXPECT_EQ(Print(DType::kInt64, values, {200}), "[  0   1   2 ... 197 198 199]");
  EXPECT_EQ(Print(DType::kInt64, values, {4, 50}), "[[  0   1   2 ...  47  48  49] ... [150 151 152 ... 197 198 199]]");
  EXPECT_EQ(Print(DType::kInt64, values, {100, 2}), "[[  0   1] ... [198 199]]");
}

}  // namespace
}  // namespace headrace::cli
