// Runs of maps in one pass, held bit by bit to the same maps one after another.
#include <gtest/gtest.h>

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

TEST(QuickPixels, AreThereForPhotographs) {
  if (__builtin_cpu_supports("avx2") == 0) GTEST_SKIP() << "this processor has no AVX2";
  PixelProgram program{DType::kFloat32, DType::kFloat16, true, 16, 3};
  EXPECT_NE(QuickPixelsFor(program), nullptr);
  program.channels = 4;
  EXPECT_EQ(QuickPixelsFor(program), nullptr) << "these go by the table";
}

}  // namespace
}  // namespace headrace::side
