// The quick way between pixels, held bit by bit to the plain one, which image_test.cc holds to TensorFlow's.
#include "sidecar/decode/bilinear.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

namespace headrace::side {
namespace {

constexpr size_t kBehind = 3;
constexpr float kUntouched = -7.5F;

TEST(Bilinear, IsTheSameBetweenColumnsForEveryProcessor) {
  std::mt19937 random(1);
  for (const int64_t channels : {1, 3, 4}) {
    for (const int64_t width : {1, 2, 7, 500}) {
      std::vector<uint8_t> row(static_cast<size_t>(width * channels) + kBehind);
      for (uint8_t& value : row) value = static_cast<uint8_t>(random());
      std::vector<Between> columns(41);
      for (Between& x : columns) {
        const auto lower = static_cast<int64_t>(random() % static_cast<unsigned>(width));
        x = {lower * channels, std::min(lower + 1, width - 1) * channels, static_cast<float>(random() % 1000) / 1000};
      }
      const size_t values = columns.size() * static_cast<size_t>(channels);
      std::vector<float> plain(values + kBehind + 1, kUntouched);
      std::vector<float> quick(values + kBehind + 1, kUntouched);
      PlainBilinear().columns(row.data(), columns, channels, plain.data());
      BilinearFor().columns(row.data(), columns, channels, quick.data());
      EXPECT_EQ(std::memcmp(plain.data(), quick.data(), values * sizeof(float)), 0) << channels << " x " << width;
      EXPECT_EQ(plain[0], static_cast<float>(row[static_cast<size_t>(columns[0].lower)]) +
                              (static_cast<float>(row[static_cast<size_t>(columns[0].upper)]) -
                               static_cast<float>(row[static_cast<size_t>(columns[0].lower)])) *
                                  columns[0].part);
      EXPECT_EQ(quick.back(), kUntouched) << "more than 3 values behind the last";
    }
  }
}

TEST(Bilinear, IsTheSameBetweenRowsForEveryProcessor) {
  std::mt19937 random(2);
  for (const size_t values : {1U, 7U, 8U, 9U, 672U}) {
    std::vector<float> top(values), bottom(values), plain(values), quick(values + 1, kUntouched);
    for (float& value : top) value = static_cast<float>(random() % 25600) / 100;
    for (float& value : bottom) value = static_cast<float>(random() % 25600) / 100;
    PlainBilinear().rows(top.data(), bottom.data(), 0.3F, values, plain.data());
    BilinearFor().rows(top.data(), bottom.data(), 0.3F, values, quick.data());
    EXPECT_EQ(std::memcmp(plain.data(), quick.data(), values * sizeof(float)), 0) << values;
    EXPECT_EQ(plain[0], top[0] + (bottom[0] - top[0]) * 0.3F);
    EXPECT_EQ(quick.back(), kUntouched);
  }
}

}  // namespace
}  // namespace headrace::side
