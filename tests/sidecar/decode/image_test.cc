#include "sidecar/decode/image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "tests/sidecar/files.h"
#include "tests/sidecar/images.h"
#include "tests/sidecar/pipelines.h"

namespace headrace::side {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

Status Decode(const std::string& bytes, int channels, Image* image) {
  return DecodeImage({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, channels, image);
}

TEST(Png, KeepsEveryPixelAndAddsOrDropsChannels) {
  const std::vector<uint8_t> rgb = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 255, 0, 128};
  Image image;
  ASSERT_TRUE(Decode(Png(2, 3, PNG_FORMAT_RGB, rgb), 3, &image).ok());
  EXPECT_EQ(image.height, 2);
  EXPECT_EQ(image.width, 3);
  EXPECT_EQ(image.pixels, rgb);
  ASSERT_TRUE(Decode(Png(1, 2, PNG_FORMAT_RGB, {1, 2, 3, 4, 5, 6}), 4, &image).ok());
  EXPECT_THAT(image.pixels, ElementsAre(1, 2, 3, 255, 4, 5, 6, 255));
  ASSERT_TRUE(Decode(Png(1, 2, PNG_FORMAT_GRAY, {7, 9}), 3, &image).ok());
  EXPECT_THAT(image.pixels, ElementsAre(7, 7, 7, 9, 9, 9));
  ASSERT_TRUE(Decode(Png(1, 1, PNG_FORMAT_RGBA, {10, 20, 30, 255}), 3, &image).ok());
  EXPECT_THAT(image.pixels, ElementsAre(10, 20, 30));
  ASSERT_TRUE(Decode(Png(1, 1, PNG_FORMAT_RGB, {50, 50, 50}), 1, &image).ok());
  EXPECT_THAT(image.pixels, ElementsAre(50)) << "grey stays what it is";
}

TEST(Jpeg, KeepsAnImageOfOneColour) {
  Image image;
  ASSERT_TRUE(Decode(Jpeg(8, 16, 1, std::vector<uint8_t>(128, 77)), 1, &image).ok());
  EXPECT_EQ(image.height, 8);
  EXPECT_EQ(image.width, 16);
  EXPECT_THAT(image.pixels, Each(77));
  ASSERT_TRUE(Decode(Jpeg(8, 8, 1, std::vector<uint8_t>(64, 77)), 3, &image).ok());
  EXPECT_EQ(image.pixels.size(), 192u);
  EXPECT_THAT(image.pixels, Each(77));
  ASSERT_TRUE(Decode(Jpeg(8, 8, 3, std::vector<uint8_t>(192, 200)), 3, &image).ok());
  EXPECT_THAT(image.pixels, Each(200));
}

TEST(DecodeImage, RefusesWhatIsBroken) {
  Image image;
  const std::string jpeg = Jpeg(64, 64, 1, std::vector<uint8_t>(4096, 7));
  const std::string png = Png(1, 2, PNG_FORMAT_GRAY, {7, 9});
  EXPECT_THAT(Decode("GIF89a and so on", 3, &image).message(), HasSubstr("is neither a JPEG nor a PNG image"));
  EXPECT_FALSE(Decode("", 3, &image).ok());
  EXPECT_THAT(Decode(jpeg.substr(0, jpeg.size() / 2), 1, &image).message(), HasSubstr("is a broken JPEG image: "));
  EXPECT_THAT(Decode(jpeg, 4, &image).message(), HasSubstr("no fourth channel"));
  for (size_t size = 9; size < png.size() - 12; ++size) {  // the last 12 bytes are the empty end chunk
    EXPECT_THAT(Decode(png.substr(0, size), 1, &image).message(),
                HasSubstr("is a broken PNG image: it ends too early"));
  }
  std::string huge = png;
  huge.replace(16, 8, std::string("\0\x0f\x42\x40\0\x0f\x42\x40", 8));  // a million by a million; its CRC is wrong too
  EXPECT_FALSE(Decode(huge, 1, &image).ok());
}

class DecodeImageMap : public testing::Test {
 protected:
  PipelineRun Run(const std::string& image, const std::string& arguments) {
    folder_.Write("a.tfrecord", TFRecordOf(ExampleOf({{"i", BytesList(image)}})));
    return PipelineRun(
        R"({"source": {"files": {"paths": ["a.tfrecord"]}}, "features": [{"name": "i", "dtype": "string"}],
        "pipeline": [{"map": {"decodeImage": )" +
            arguments + R"(}}, {"batch": {"size": 1}}]})",
        {}, folder_.path());
  }
  Folder folder_;
};

TEST_F(DecodeImageMap, InterpolatesBetweenHalfPixelCentres) {
  // Centres of 4 over 2 lie at -0.25, 0.25, 0.75 and 1.25 of the input, held to 0 and 1.
  const std::string image = Png(2, 2, PNG_FORMAT_GRAY, {0, 100, 200, 40});
  PipelineRun run = Run(image, R"({"shape": [4, 4, 1], "resize": "Bilinear"})");
  const auto batches = run.Epoch();
  ASSERT_EQ(batches.size(), 1u) << run.status().message();
  EXPECT_THAT(batches[0].dims[0], ElementsAre(1, 4, 4, 1));
  EXPECT_THAT(batches[0].Values<float>(),
              ElementsAre(0, 25, 75, 100,          //
                          50, 58.75, 76.25, 85,    // a quarter of the way from the first row to the last
                          150, 126.25, 78.75, 55,  // three quarters
                          200, 160, 80, 40));
  EXPECT_THAT(Run(image, R"({"shape": [1, 1, 1], "resize": "Bilinear"})").Values<float>(), ElementsAre(85));
}

TEST_F(DecodeImageMap, TakesTheNearestPixel) {
  const std::string image = Png(2, 2, PNG_FORMAT_GRAY, {0, 100, 200, 40});
  EXPECT_THAT(Run(image, R"({"shape": [2, 4, 1], "resize": "Nearest"})").Values<uint8_t>(),
              ElementsAre(0, 0, 100, 100, 200, 200, 40, 40));
  EXPECT_THAT(Run(image, R"({"shape": [1, 1, 1], "resize": "Nearest"})").Values<uint8_t>(), ElementsAre(40));
}

TEST_F(DecodeImageMap, NamesFileAndOffsetOfAnImageOfAnotherShape) {
  const std::string image = Png(2, 3, PNG_FORMAT_GRAY, {0, 1, 2, 3, 4, 5});
  EXPECT_THAT(Run(image, R"({"shape": [2, 3, 1]})").Values<uint8_t>(), ElementsAre(0, 1, 2, 3, 4, 5));
  PipelineRun run = Run(image, R"({"shape": [2, 2, 1]})");
  EXPECT_TRUE(run.Epoch().empty());
  EXPECT_EQ(run.status().message(),
            folder_.path() +
                "/a.tfrecord: record at byte 0: component \"i\": is 2 x 3 pixels and the shape takes 2 x 2; set "
                "spec.pipeline[0].map.decodeImage.resize to Bilinear or Nearest, or correct its shape");
  PipelineRun broken = Run("no image", R"({"shape": [2, 2, 1]})");
  EXPECT_TRUE(broken.Epoch().empty());
  EXPECT_EQ(broken.status().code(), Code::kCorrupt);
  EXPECT_THAT(broken.status().message(), HasSubstr("record at byte 0: component \"i\": is neither a JPEG nor a PNG"));
}

}  // namespace
}  // namespace headrace::side
