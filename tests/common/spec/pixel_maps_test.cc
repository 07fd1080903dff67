#include "common/spec/pixel_maps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace headrace {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;

InputSpec Spec(const std::string& pipeline, const std::string& image = R"("uint8", "shape": [4, 2, 3])") {
  auto spec = ParseInputSpec(json::parse(R"({"source": {"files": {"paths": ["a"]}}, "features": [{"name": "image",
      "dtype": )" + image + R"(}, {"name": "label", "dtype": "int64"}], "pipeline": )" +
                                         pipeline + "}"));
  EXPECT_TRUE(spec.ok()) << spec.status().message();
  return *spec;
}

// The maps of `pipeline`, on the component "image" where they name no other.
std::string Maps(const std::string& maps) {
  json list = json::array();
  for (json map : json::parse(maps)) {
    if (!map.contains("feature")) map["feature"] = "image";
    list.push_back({{"map", map}});
  }
  return list.dump();
}

// The stages of the run that begins at the first.
std::vector<size_t> Stages(const InputSpec& spec, size_t first = 0) {
  const auto maps = FindPixelMaps(spec, first, spec.pipeline.size());
  return maps ? maps->stages : std::vector<size_t>();
}

TEST(PixelMaps, AreTheMapsOfOneImage) {
  const InputSpec spec = Spec(Maps(R"([{"cast": "float32"}, {"scales": [1, 2, 3], "offset": -1},
                                       {"transpose": [2, 0, 1]}, {"cast": "float16"}])"));
  const auto maps = FindPixelMaps(spec, 0, 4);
  ASSERT_TRUE(maps);
  EXPECT_THAT(maps->stages, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(maps->values.size(), 3u);
  EXPECT_EQ(maps->pixels, 8);
  EXPECT_EQ(maps->channels, 3);
  EXPECT_TRUE(maps->by_channel);
  EXPECT_TRUE(maps->channels_first);
  EXPECT_EQ(maps->input, (TensorSpec{"image", DType::kUint8, {4, 2, 3}}));
  EXPECT_EQ(maps->output, (TensorSpec{"image", DType::kFloat16, {3, 4, 2}}));
  EXPECT_THAT(FindPixelMaps(spec, 0, 2)->stages, ElementsAre(0, 1)) << "of the first two stages";
  EXPECT_THAT(FindPixelMaps(spec, 1, 4)->stages, ElementsAre(1, 2, 3)) << "these are floats already";
  EXPECT_THAT(FindPixelMaps(spec, 2, 3)->stages, ElementsAre(2)) << "one alone";
}

TEST(PixelMaps, MayStandApart) {
  EXPECT_THAT(Stages(Spec(R"([{"map": {"feature": "image", "cast": "float32", "as": "floats"}}, {"shuffle":
      {"bufferSize": 9}}, {"map": {"feature": "label", "oneHot": {"depth": 3}}}, {"batch": {"size": 2}},
      {"map": {"feature": "image", "transpose": [1, 0, 2]}}, {"map": {"feature": "floats", "offset": 1}}])")),
              ElementsAre(0, 5));
}

TEST(PixelMaps, EndBeforeWhatNeedsTheirParts) {
  // A component made of it, an operation of another kind, one that does not fit the channels, components that move.
  const std::string two = R"({"cast": "float32"}, {"scale": 2}, )";
  for (const std::string third : {R"({"offset": 1, "as": "more"})", R"({"reshape": [-1]})"}) {
    EXPECT_THAT(Stages(Spec(Maps("[" + two + third + R"(, {"cast": "float16"}])"))), ElementsAre(0, 1)) << third;
  }
  EXPECT_THAT(Stages(Spec(Maps("[" + two + R"({"transpose": [2, 0, 1]}, {"offsets": [1, 2]}])"))),
              ElementsAre(0, 1, 2));
  EXPECT_THAT(Stages(Spec(R"([{"map": {"feature": "image", "cast": "float32"}}, {"map": {"feature": "image",
      "scale": 2}}, {"enumerate": {}}, {"map": {"feature": "image", "offset": 2}}])")),
              ElementsAre(0, 1));
}

TEST(PixelMaps, TakeTransposesThatTogetherBringChannelsFirst) {
  EXPECT_THAT(Stages(Spec(Maps(R"([{"cast": "float32"}, {"transpose": [1, 0, 2]}, {"transpose": [2, 1, 0]}])"))),
              ElementsAre(0, 1, 2));
  const auto kept =
      FindPixelMaps(Spec(Maps(R"([{"cast": "float32"}, {"transpose": [1, 0, 2]}, {"transpose": [1, 0, 2]}])")), 0, 3);
  ASSERT_TRUE(kept);
  EXPECT_FALSE(kept->channels_first);
  EXPECT_THAT(Stages(Spec(Maps(R"([{"cast": "float32"}, {"scale": 2}, {"transpose": [1, 0, 2]}])"))),
              ElementsAre(0, 1));
  EXPECT_THAT(Stages(Spec(Maps(R"([{"cast": "float32"}, {"transpose": [1, 2, 0]}])"))), ElementsAre(0));
  EXPECT_THAT(Stages(Spec(Maps(R"([{"transpose": [1, 2, 0]}])"))), IsEmpty());
}

TEST(PixelMaps, AreOfFixedShapesOfBytesOrFloats) {
  const std::string maps = Maps(R"([{"cast": "float32"}, {"scale": 2}])");
  for (const char* image : {R"("int8", "shape": [4])", R"("uint8", "shape": [-1])", R"("uint8", "shape": [])",
                            R"("float64", "shape": [4])"}) {
    EXPECT_THAT(Stages(Spec(maps, image)), IsEmpty()) << image;
  }
  json scales(65, 1);
  EXPECT_THAT(
      Stages(Spec(Maps(R"([{"cast": "float32"}, {"scales": )" + scales.dump() + "}]"), R"("uint8", "shape": [2, 65])")),
      ElementsAre(0));
}

PixelProgram Program(const std::string& maps, const std::string& image = R"("uint8", "shape": [4, 2, 3])") {
  const InputSpec spec = Spec(Maps(maps), image);
  const auto found = FindPixelMaps(spec, 0, spec.pipeline.size());
  EXPECT_TRUE(found);
  const auto program = ProgramOf(*found);
  EXPECT_TRUE(program);
  return program.value_or(PixelProgram());
}

TEST(PixelProgram, HoldsTheNumbersOfTheMaps) {
  const PixelProgram program = Program(R"([{"cast": "float32"}, {"scale": 0.5}, {"offsets": [1, 2, 3]},
                                           {"scales": [4, 5, 6], "offset": 7}, {"cast": "float16"}])");
  EXPECT_EQ(program.within, DType::kFloat32);
  EXPECT_EQ(program.result, DType::kFloat16);
  EXPECT_EQ(program.steps, 3);
  EXPECT_THAT(program.scale[0], ElementsAre(0.5, 0.5, 0.5, 0.5));
  EXPECT_EQ(program.offset[0][0], 0);
  EXPECT_TRUE(std::signbit(program.offset[0][0])) << "+0 would make 0 of -0";
  EXPECT_THAT(program.scale[1], ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(program.offset[1], ElementsAre(1, 2, 3, 1));
  EXPECT_THAT(program.scale[2], ElementsAre(4, 5, 6, 4));
  EXPECT_THAT(program.offset[2], ElementsAre(7, 7, 7, 7));
}

TEST(PixelProgram, RoundsItsNumbersToTheTypeWithinWhichItCalculates) {
  // 2049 is no float16, 257 no bfloat16.
  EXPECT_EQ(Program(R"([{"cast": "float16"}, {"scale": 2049}])").scale[0][0], 2048);
  EXPECT_EQ(Program(R"([{"cast": "bfloat16"}, {"offset": 257}])").offset[0][0], 256);
  EXPECT_EQ(Program(R"([{"cast": "float32"}, {"scale": 2049}, {"cast": "float16"}])").scale[0][0], 2049);
}

TEST(PixelProgram, IsNotForEveryRun) {
  for (const char* maps : {R"([{"transpose": [2, 0, 1]}, {"cast": "int32"}])", R"([{"cast": "float64"}, {"scale": 2}])",
                           R"([{"cast": "float16"}, {"scale": 2}, {"cast": "float32"}])",
                           R"([{"cast": "float32"}, {"cast": "float16"}, {"scale": 2}])",
                           R"([{"cast": "float32"}, {"scale": 2}, {"scale": 2}, {"scale": 2}, {"scale": 2}])"}) {
    const InputSpec spec = Spec(Maps(maps));
    const auto found = FindPixelMaps(spec, 0, spec.pipeline.size());
    ASSERT_TRUE(found) << maps;
    EXPECT_FALSE(ProgramOf(*found)) << maps;
  }
  const InputSpec many =
      Spec(Maps(R"([{"cast": "float32"}, {"scales": [1, 2, 3, 4, 5]}])"), R"("uint8", "shape": [2, 5])");
  EXPECT_FALSE(ProgramOf(*FindPixelMaps(many, 0, 2)));
  EXPECT_EQ(Program(R"([{"cast": "float32"}, {"scale": 2}])", R"("uint8", "shape": [2, 5])").channels, 5);
}

}  // namespace
}  // namespace headrace
