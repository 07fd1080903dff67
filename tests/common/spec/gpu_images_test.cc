// Which maps a GPU can do of a pipeline, and what is left of it for the CPU.
#include "common/spec/gpu_images.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "common/spec/components.h"

namespace headrace {
namespace {

using nlohmann::json;

// Records of an int64 and two images, and these transformations.
InputSpec Spec(const json& pipeline) {
  const json image = {6, 8, 3};
  const json spec = {{"source", {{"files", {{"paths", {"a"}}}}}},
                     {"features",
                      {{{"name", "label"}, {"dtype", "int64"}},
                       {{"name", "image"}, {"dtype", "uint8"}, {"shape", image}},
                       {{"name", "mask"}, {"dtype", "uint8"}, {"shape", image}}}},
                     {"pipeline", pipeline}};
  auto parsed = ParseInputSpec(spec);
  EXPECT_TRUE(parsed.ok()) << parsed.status().message();
  return std::move(*parsed);
}
json Map(const char* feature, json body) {
  body["feature"] = feature;
  return {{"map", std::move(body)}};
}
// The maps of photographs.
std::vector<json> Maps(const char* feature) {
  return {Map(feature, {{"cast", "float32"}}), Map(feature, {{"scales", {1, 2, 3}}}),
          Map(feature, {{"transpose", {2, 0, 1}}}), Map(feature, {{"cast", "float16"}})};
}

TEST(GpuImages, AreWhereTheLastMapsAreAProgram) {
  std::vector<json> pipeline = {Map("label", {{"cast", "float32"}})};
  for (const json& map : Maps("image")) pipeline.push_back(map);
  pipeline.push_back({{"shuffle", {{"bufferSize", 10}}}});
  pipeline.push_back({{"enumerate", json::object()}});
  pipeline.push_back({{"batch", {{"size", 8}}}});
  const InputSpec spec = Spec(pipeline);
  const std::vector<GpuImages> found = FindGpuImages(spec);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].stages, (std::vector<size_t>{1, 2, 3, 4}));
  EXPECT_EQ(found[0].decoded, (TensorSpec{"image", DType::kUint8, {6, 8, 3}}));
  EXPECT_EQ(found[0].image_bytes(), 144U);
  EXPECT_EQ(found[0].program.result, DType::kFloat16);
  EXPECT_TRUE(found[0].program.channels_first);
  const std::vector<TensorSpec> element = RecordComponents(spec, spec.pipeline.size(), nullptr);
  EXPECT_EQ(element[found[0].component].name, "image");
  EXPECT_EQ(element[found[0].component].shape, (std::vector<int64_t>{3, 6, 8}));

  const InputSpec left = WithoutMapsOf(spec, found);
  std::vector<TensorSpec> expected = element;
  expected[found[0].component] = found[0].decoded;
  EXPECT_EQ(RecordComponents(left, left.pipeline.size(), nullptr), expected);
  EXPECT_EQ(left.pipeline.size(), spec.pipeline.size()) << "messages go by places in the pipeline";
  EXPECT_TRUE(FindGpuImages(left).empty());
}

TEST(GpuImages, MayBeSeveralWithTheirMapsMixed) {
  std::vector<json> pipeline;
  const std::vector<json> masks = Maps("mask");
  size_t i = 0;
  for (const json& map : Maps("image")) {
    pipeline.push_back(map);
    pipeline.push_back(masks[i++]);
  }
  const std::vector<GpuImages> found = FindGpuImages(Spec(pipeline));
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].component, 1U);
  EXPECT_EQ(found[1].component, 2U);
  EXPECT_EQ(found[1].stages, (std::vector<size_t>{1, 3, 5, 7}));
}

TEST(GpuImages, AreNoneWhereTheCpuIsNeeded) {
  const auto none = [](std::vector<json> pipeline) {
    pipeline.push_back({{"batch", {{"size", 8}}}});
    return FindGpuImages(Spec(pipeline)).empty();
  };
  std::vector<json> maps = Maps("image");
  EXPECT_FALSE(none(maps));
  maps.push_back(Map("image", {{"as", "again"}, {"cast", "float32"}}));
  EXPECT_TRUE(none(maps)) << "another component is made of what they make";
  maps.back() = Map("image", {{"transpose", {1, 2, 0}}});
  EXPECT_TRUE(none(maps)) << "channels end last";
  maps.back() = Map("image", {{"reshape", {144}}});
  EXPECT_TRUE(none(maps)) << "another map is the last";
  maps = Maps("image");
  maps[0]["map"]["as"] = "floats";
  for (size_t i = 1; i < maps.size(); ++i) maps[i]["map"]["feature"] = "floats";
  EXPECT_TRUE(none(maps)) << "the bytes are delivered, too";
  EXPECT_TRUE(none({Map("image", {{"cast", "float32"}}), Map("image", {{"scale", 2}})})) << "channels stay last";
  EXPECT_TRUE(none({Map("image", {{"cast", "float64"}}), Map("image", {{"transpose", {2, 0, 1}}})}));
  EXPECT_TRUE(none({Map("image", {{"transpose", {2, 0, 1}}})})) << "one map, which changes no value";
  EXPECT_TRUE(none({}));
}

TEST(GpuImages, OfARangeThatIsMadeAnImage) {
  const json spec = {{"source", {{"range", {{"stop", 10}}}}},
                     {"pipeline",
                      {{{"map", {{"as", "image"}, {"cast", "uint8"}}}},
                       Map("image", {{"reshape", {1, 1, 1}}}),
                       Map("image", {{"cast", "float32"}}),
                       Map("image", {{"transpose", {2, 0, 1}}})}}};
  const auto parsed = ParseInputSpec(spec);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  const std::vector<GpuImages> found = FindGpuImages(*parsed);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].component, 1U);
  EXPECT_EQ(found[0].stages, (std::vector<size_t>{2, 3}));
}

}  // namespace
}  // namespace headrace
