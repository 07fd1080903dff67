#include "sidecar/decode/column_cast.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace headrace::side {
namespace {

template <typename To, typename From>
std::vector<To> CastAll(DType from, DType to, const std::vector<From>& values, size_t* fit = nullptr) {
  std::vector<To> out(values.size());
  const size_t cast = CastOf(from, to)(reinterpret_cast<const uint8_t*>(values.data()), values.size(),
                                       reinterpret_cast<uint8_t*>(out.data()));
  if (fit != nullptr) *fit = cast;
  if (fit == nullptr) {
    EXPECT_EQ(cast, values.size());
  }
  return out;
}

TEST(ColumnCast, KeepsEveryIntegerThatFits) {
  EXPECT_EQ((CastAll<int32_t, int64_t>(DType::kInt64, DType::kInt32, {0, -1, INT32_MIN, INT32_MAX})),
            (std::vector<int32_t>{0, -1, INT32_MIN, INT32_MAX}));
  EXPECT_EQ((CastAll<uint64_t, int8_t>(DType::kInt8, DType::kUint64, {0, 127})), (std::vector<uint64_t>{0, 127}));
  EXPECT_EQ((CastAll<int64_t, uint32_t>(DType::kUint32, DType::kInt64, {UINT32_MAX})),
            (std::vector<int64_t>{UINT32_MAX}));
  EXPECT_EQ((CastAll<uint8_t, int32_t>(DType::kInt32, DType::kBool, {0, 1})), (std::vector<uint8_t>{0, 1}));
  EXPECT_EQ((CastAll<float, uint8_t>(DType::kBool, DType::kFloat32, {1, 0})), (std::vector<float>{1, 0}));
}

TEST(ColumnCast, ReadsValuesOfAnyAlignment) {
  const std::vector<int64_t> values = {-5, 6, INT32_MAX};
  std::vector<uint8_t> bytes(1 + values.size() * sizeof(int64_t));
  std::memcpy(&bytes[1], values.data(), bytes.size() - 1);
  std::vector<int32_t> narrow(values.size());
  ASSERT_EQ(CastOf(DType::kInt64, DType::kInt32)(&bytes[1], 3, reinterpret_cast<uint8_t*>(narrow.data())), 3u);
  EXPECT_EQ(narrow, (std::vector<int32_t>{-5, 6, INT32_MAX}));
  std::vector<double> floats(values.size());
  ASSERT_EQ(CastOf(DType::kInt64, DType::kFloat64)(&bytes[1], 3, reinterpret_cast<uint8_t*>(floats.data())), 3u);
  EXPECT_EQ(floats, (std::vector<double>{-5, 6, INT32_MAX}));
}

TEST(ColumnCast, SaysWhichIntegerDoesNotFit) {
  size_t fit = 0;
  CastAll<int32_t, int64_t>(DType::kInt64, DType::kInt32, {1, 2, int64_t{INT32_MAX} + 1, INT64_MIN}, &fit);
  EXPECT_EQ(fit, 2u);
  CastAll<uint8_t, int32_t>(DType::kInt32, DType::kUint8, {-1}, &fit);
  EXPECT_EQ(fit, 0u);
  CastAll<int64_t, uint64_t>(DType::kUint64, DType::kInt64, {7, UINT64_MAX}, &fit);
  EXPECT_EQ(fit, 1u);
  CastAll<uint8_t, int32_t>(DType::kInt32, DType::kBool, {1, 0, 2}, &fit);
  EXPECT_EQ(fit, 2u);
}

TEST(ColumnCast, RoundsFloatsToTheNearest) {
  const std::vector<float> rounded =
      CastAll<float, double>(DType::kFloat64, DType::kFloat32, {0.1, 1e300, -2.5, 16777217});
  EXPECT_EQ(rounded, (std::vector<float>{0.1F, std::numeric_limits<float>::infinity(), -2.5F, 16777216}));
  // 1 and 65504, the largest, as IEEE 754 has them in 16 bits.
  EXPECT_EQ((CastAll<float, uint16_t>(DType::kFloat16, DType::kFloat32, {0x3c00, 0x7bff})),
            (std::vector<float>{1, 65504}));
  EXPECT_EQ((CastAll<uint16_t, float>(DType::kFloat32, DType::kFloat16, {1, 65504})),
            (std::vector<uint16_t>{0x3c00, 0x7bff}));
}

TEST(ColumnCast, MakesNoIntegersOfFloatsAndNoNumbersOfStrings) {
  EXPECT_FALSE(Casts(DType::kFloat32, DType::kInt64));
  EXPECT_FALSE(Casts(DType::kFloat64, DType::kBool));
  EXPECT_FALSE(Casts(DType::kString, DType::kInt64));
  EXPECT_FALSE(Casts(DType::kInt64, DType::kString));
  EXPECT_TRUE(Casts(DType::kInt64, DType::kBfloat16));
  EXPECT_TRUE(Casts(DType::kString, DType::kString));
  EXPECT_EQ(CastOf(DType::kInt32, DType::kInt32), nullptr);
}

// Every width, and numbers of columns and rows on both sides of what is done at once, from addresses of any alignment.
TEST(Interleave, PutsRowsTogether) {
  std::mt19937 random(1);
  for (const size_t bytes : {1, 2, 4, 8}) {
    for (const size_t columns : {1, 2, 3, 4, 5, 8, 9, 65, 130}) {
      for (const size_t rows : {0, 1, 3, 4, 7, 64, 1025}) {
        std::vector<std::string> values(columns);
        std::vector<const uint8_t*> in;
        for (std::string& column : values) {
          column.resize(rows * bytes + 1);
          for (char& c : column) c = static_cast<char>(random());
          in.push_back(reinterpret_cast<const uint8_t*>(column.data()) + 1);
        }
        std::string expected;
        for (size_t r = 0; r < rows; ++r) {
          for (const std::string& column : values) expected += column.substr(1 + r * bytes, bytes);
        }
        std::string out(expected.size(), '\0');
        Interleave(in, rows, bytes, reinterpret_cast<uint8_t*>(out.data()));
        ASSERT_EQ(out, expected) << bytes << " bytes, " << columns << " columns, " << rows << " rows";
      }
    }
  }
}

}  // namespace
}  // namespace headrace::side
