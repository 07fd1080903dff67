// Runs of maps in one pass, held bit by bit to the same maps one after another.
#include <gtest/gtest.h>

#include "common/spec/pixel_maps.h"
#include "sidecar/decode/pixels_quick.h"
#include "tests/sidecar/mapped_images.h"

namespace headrace::side {
namespace {

using nlohmann::json;

struct Case {
  json shape;
  json maps;
};

class Pixels : public testing::TestWithParam<Case> {};

TEST_P(Pixels, AreTheSameInOnePass) {
  const MappedImages images(GetParam().shape, GetParam().maps);
  ASSERT_TRUE(images.pixel_maps()) << "nothing is done in one pass here";
  EXPECT_EQ(images.AtOnce(3), images.OneByOne(3)) << GetParam().maps;
}

// Pixels that fill vectors, and that do not, in every type.
std::vector<Case> Photographs() {
  std::vector<Case> cases;
  for (const auto& [height, width] : {std::pair(1, 1), std::pair(4, 4), std::pair(5, 7), std::pair(64, 65)}) {
    for (const auto& [within, result] :
         {std::pair("float32", "float32"), std::pair("float32", "float16"), std::pair("float16", "float16"),
          std::pair("float32", "bfloat16"), std::pair("bfloat16", "bfloat16"), std::pair("float64", "int16")}) {
      cases.push_back({{height, width, 3}, Normalised(within, result, {2, 0, 1})});
      cases.push_back({{height, width, 3}, Normalised(within, result, nullptr)});
    }
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Photographs, Pixels, testing::ValuesIn(Photographs()));

INSTANTIATE_TEST_SUITE_P(
    Others, Pixels,
    testing::Values(
        // One channel, two, four, many; vectors; videos.
        Case{{7, 9, 1},
             json::parse(R"([{"cast": "float32"}, {"scales": [0.1], "offset": -3}, {"transpose": [2, 0, 1]}])")},
        Case{{9, 9, 2}, json::parse(R"([{"cast": "float32"}, {"scales": [0.1, -7]}, {"transpose": [2, 0, 1]}])")},
        Case{{9, 9, 4}, json::parse(R"([{"cast": "float16"}, {"offsets": [0.1, 2, 3, 4]}, {"transpose": [2, 0, 1]}])")},
        Case{{5, 7}, json::parse(R"([{"cast": "float32"}, {"scale": 0.1}, {"transpose": [1, 0]}])")},
        Case{{5, 7}, json::parse(R"([{"cast": "float32"}, {"scale": 0.1}])")},
        Case{{5, 7}, json::parse(R"([{"cast": "float32"}, {"scales": [1, 2, 3, 4, 5, 6, 7]}, {"transpose": [1, 0]}])")},
        Case{{3, 5, 7, 3}, json::parse(R"([{"transpose": [3, 0, 1, 2]}, {"cast": "float16"}])")},
        Case{{784}, json::parse(R"([{"cast": "float32"}, {"scale": 0.00392156862745098, "offset": -0.5}])")},
        // One map, which a program holds or not.
        Case{{9, 7, 3}, json::parse(R"([{"cast": "float32"}])")},
        Case{{9, 7, 3}, json::parse(R"([{"cast": "int64"}])")},
        Case{{9, 7, 3}, json::parse(R"([{"transpose": [2, 0, 1]}])")},
        // 0 times a negative number is -0, which an offset of 0 would make 0.
        Case{{4, 4, 3}, json::parse(R"([{"cast": "float32"}, {"scale": -1}, {"transpose": [2, 0, 1]}])")},
        // Beyond the largest float16, and below the smallest normal one.
        Case{{4, 4, 3}, json::parse(R"([{"cast": "float16"}, {"scale": 1000}, {"scale": 1e-7}])")},
        Case{{4, 4, 3}, json::parse(R"([{"cast": "float32"}, {"scale": 1e-7}, {"cast": "float16"}])")},
        // More steps than a program holds, and a component beside the one that it is made of.
        Case{{4, 4, 3}, json::parse(R"([{"cast": "float32"}, {"scale": 3}, {"scale": 5}, {"offset": 0.1}, {"scale": 7},
             {"transpose": [2, 0, 1]}])")},
        Case{{4, 5, 3}, json::parse(R"([{"cast": "float32", "as": "y"}, {"feature": "x", "transpose": [1, 0, 2]},
             {"feature": "y", "scale": 3}, {"feature": "y", "transpose": [2, 0, 1]}])")}));

// Images that are floats already, as Bilinear makes them: their bytes are random, so they have infinities, NaN and
// numbers below the smallest normal one, too.
class FloatPixels : public testing::TestWithParam<Case> {};

TEST_P(FloatPixels, AreTheSameInOnePass) {
  const MappedImages images(GetParam().shape, GetParam().maps, "float32");
  const std::optional<PixelMaps> maps = images.pixel_maps();
  ASSERT_TRUE(maps);
  const std::optional<PixelProgram> program = ProgramOf(*maps);
  ASSERT_TRUE(program);
  if (__builtin_cpu_supports("avx2") != 0) {
    ASSERT_NE(QuickPixelsFor(*program, DType::kFloat32), nullptr) << "nothing is done in one pass here";
  }
  EXPECT_EQ(images.AtOnce(5), images.OneByOne(5)) << GetParam().maps;
}

// Without the cast from uint8, which they have behind them.
json OfFloats(const char* within, const char* result, const json& transpose) {
  json maps = Normalised(within, result, transpose);
  if (std::string(within) == "float32") maps.erase(0);
  return maps;
}

std::vector<Case> FloatPhotographs() {
  std::vector<Case> cases;
  for (const auto& [height, width] : {std::pair(1, 1), std::pair(2, 4), std::pair(5, 7), std::pair(64, 65)}) {
    for (const auto& [within, result] :
         {std::pair("float32", "float32"), std::pair("float32", "float16"), std::pair("float16", "float16")}) {
      cases.push_back({{height, width, 3}, OfFloats(within, result, {2, 0, 1})});
      cases.push_back({{height, width, 3}, OfFloats(within, result, nullptr)});
    }
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Photographs, FloatPixels, testing::ValuesIn(FloatPhotographs()));

INSTANTIATE_TEST_SUITE_P(
    Others, FloatPixels,
    testing::Values(
        // One map; one value; one channel, two, four, many that are alike.
        Case{{9, 7, 3}, json::parse(R"([{"transpose": [2, 0, 1]}])")},
        Case{{5}, json::parse(R"([{"cast": "float16"}])")}, Case{{1}, json::parse(R"([{"scale": -0.1}])")},
        Case{{784}, json::parse(R"([{"offset": -0.5}])")},
        Case{{7, 9, 1}, json::parse(R"([{"scales": [0.1], "offset": -3}, {"transpose": [2, 0, 1]}])")},
        Case{{9, 9, 2}, json::parse(R"([{"scales": [0.1, -7]}, {"cast": "float16"}])")},
        Case{{9, 9, 4}, json::parse(R"([{"offsets": [0.1, 2, 3, 4]}, {"scale": 3}])")},
        Case{{31, 17}, json::parse(R"([{"scale": 1e-30, "offset": 1e-38}, {"cast": "float16"}])")}));

TEST(FloatPixels, GoMapByMapWhereThereIsNoQuickWay) {
  for (const char* maps : {R"([{"cast": "bfloat16"}, {"scale": 2}])", R"([{"cast": "int32"}, {"cast": "float32"}])",
                           R"([{"scales": [1, 2, 3, 4, 5]}, {"transpose": [1, 0]}])",
                           R"([{"scale": 2}, {"scale": 3}, {"scale": 5}, {"scale": 7}, {"offset": 1}])"}) {
    const MappedImages images({7, 5}, json::parse(maps), "float32");
    EXPECT_EQ(images.AtOnce(3), images.OneByOne(3)) << maps;
  }
}

TEST(QuickPixels, AreThereForPhotographs) {
  if (__builtin_cpu_supports("avx2") == 0) GTEST_SKIP() << "this processor has no AVX2";
  PixelProgram program{DType::kFloat32, DType::kFloat16, true, 16, 3};
  EXPECT_NE(QuickPixelsFor(program, DType::kUint8), nullptr);
  EXPECT_NE(QuickPixelsFor(program, DType::kFloat32), nullptr);
  EXPECT_EQ(QuickPixelsFor(program, DType::kFloat16), nullptr);
  program.channels = 4;
  EXPECT_EQ(QuickPixelsFor(program, DType::kUint8), nullptr) << "these go by the table";
}

}  // namespace
}  // namespace headrace::side
