#include "sidecar/decode/image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
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

struct Image {
  int64_t height = 0;
  int64_t width = 0;
  std::vector<uint8_t> pixels;
};

// With one decoder for all, as a thread of the loader has it.
Status Decode(const std::string& bytes, int channels, Image* image) {
  static ImageDecoder decoder;
  ASSIGN_OR_RETURN(const ImageSize size,
                   decoder.Open({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, channels));
  *image = {size.height, size.width, std::vector<uint8_t>(static_cast<size_t>(size.height * size.width * channels))};
  return decoder.Read(image->pixels.data(), true);
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

// 13 x 11 pixels in colour, which is stored at half the resolution.
constexpr char kPicture[] =
    "ffd8ffe000104a46494600010100000100010000ffdb0043000d090a0b0a080d0b0a0b0e0e0d0f13201513121213271c1e17202e2931"
    "302e292d2c333a4a3e333646372c2d405741464c4e525352323e5a615a50604a51524fffdb0043010e0e0e131113261515264f352d35"
    "4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4fffc00011"
    "08000b000d03012200021101031101ffc4001f0000010501010101010100000000000000000102030405060708090a0bffc400b51000"
    "02010303020403050504040000017d01020300041105122131410613516107227114328191a1082342b1c11552d1f02433627282090a"
    "161718191a25262728292a3435363738393a434445464748494a535455565758595a636465666768696a737475767778797a83848586"
    "8788898a92939495969798999aa2a3a4a5a6a7a8a9aab2b3b4b5b6b7b8b9bac2c3c4c5c6c7c8c9cad2d3d4d5d6d7d8d9dae1e2e3e4e5"
    "e6e7e8e9eaf1f2f3f4f5f6f7f8f9faffc4001f0100030101010101010101010000000000000102030405060708090a0bffc400b51100"
    "020102040403040705040400010277000102031104052131061241510761711322328108144291a1b1c109233352f0156272d10a1624"
    "34e125f11718191a262728292a35363738393a434445464748494a535455565758595a636465666768696a737475767778797a828384"
    "85868788898a92939495969798999aa2a3a4a5a6a7a8a9aab2b3b4b5b6b7b8b9bac2c3c4c5c6c7c8c9cad2d3d4d5d6d7d8d9dae2e3e4"
    "e5e6e7e8e9eaf2f3f4f5f6f7f8f9faffda000c03010002110311003f005850fd8eddd7393b89fcb8fe54cbb6f2597cb5de0e79fa123f"
    "a559b450608063816c08fae0d327451676a00ecdfceb2af2e5527fd6e73e3aea849aeffa9fffd9";

std::string FromHex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2) bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

TEST(Jpeg, HasThePixelsOfTheAccurateTransform) {
  Image image;
  ASSERT_TRUE(Decode(FromHex(kPicture), 3, &image).ok());
  ASSERT_EQ(image.height, 11);
  ASSERT_EQ(image.width, 13);
  // tf.io.decode_jpeg(dct_method="INTEGER_ACCURATE") of TensorFlow 2.21: its first row, and its last.
  EXPECT_THAT(
      std::vector<uint8_t>(image.pixels.begin(), image.pixels.begin() + 39),
      ElementsAre(133, 74, 140, 141, 111, 149, 99, 121, 109, 130, 169, 140, 119, 131, 121, 129, 126, 119, 141, 133, 110,
                  161, 146, 123, 142, 119, 111, 152, 133, 139, 122, 114, 138, 100, 131, 134, 62, 161, 104));
  EXPECT_THAT(
      std::vector<uint8_t>(image.pixels.end() - 39, image.pixels.end()),
      ElementsAre(111, 51, 113, 175, 141, 178, 162, 178, 167, 106, 134, 109, 138, 138, 136, 157, 141, 142, 189, 170,
                  156, 155, 132, 114, 134, 110, 100, 136, 122, 119, 174, 186, 186, 132, 193, 160, 36, 178, 70));
  ASSERT_TRUE(Decode(FromHex(kPicture), 1, &image).ok());
  EXPECT_THAT(std::vector<uint8_t>(image.pixels.begin() + 65, image.pixels.begin() + 78),
              ElementsAre(88, 109, 160, 170, 134, 108, 151, 120, 175, 124, 172, 113, 99));
}

// Rows of whole lines are streamed to where nobody reads soon, others are copied: one image, at each alignment, and by
// libjpeg alone.
TEST(Jpeg, HasTheSamePixelsAtAnyAlignment) {
  for (const uint32_t width : {32u, 96u, 100u, 256u}) {
    constexpr uint32_t kHeight = 37;  // no multiple of the rows that libjpeg gives at once
    std::vector<uint8_t> noise(size_t{kHeight} * width * 3);
    for (size_t i = 0; i < noise.size(); ++i) noise[i] = static_cast<uint8_t>(i * i / 7);
    const std::string jpeg = Jpeg(kHeight, width, 3, noise);
    const std::vector<uint8_t> expected = JpegPixels(jpeg);
    ASSERT_EQ(expected.size(), noise.size());
    constexpr uint8_t kOutside = 0xa5;
    std::vector<uint8_t> memory(noise.size() + 192);
    uint8_t* const aligned = memory.data() + 128 - reinterpret_cast<uintptr_t>(memory.data()) % 64;
    ImageDecoder decoder;
    for (const auto& [shift, read_soon] : {std::pair(0, false), std::pair(1, false), std::pair(16, false),
                                           std::pair(32, false), std::pair(0, true), std::pair(63, true)}) {
      std::fill(memory.begin(), memory.end(), kOutside);
      ASSERT_TRUE(decoder.Open({reinterpret_cast<const uint8_t*>(jpeg.data()), jpeg.size()}, 3).ok());
      uint8_t* const pixels = aligned + shift;
      ASSERT_TRUE(decoder.Read(pixels, read_soon).ok());
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), pixels)) << width << " wide at " << shift;
      EXPECT_EQ(pixels[-1], kOutside);
      EXPECT_EQ(pixels[expected.size()], kOutside);
    }
  }
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

TEST_F(DecodeImageMap, ResizesEveryChannelToAnySize) {
  constexpr int kHeight = 5;
  constexpr int kWidth = 7;
  for (const auto& [channels, format] : {std::pair(1, PNG_FORMAT_GRAY), {3, PNG_FORMAT_RGB}, {4, PNG_FORMAT_RGBA}}) {
    std::vector<uint8_t> pixels(static_cast<size_t>(kHeight * kWidth * channels));
    for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * i * 31 + i * 7);
    const std::string image = Png(kHeight, kWidth, static_cast<uint32_t>(format), pixels);
    for (const auto& [height, width] : {std::pair(3, 4), {5, 7}, {12, 5}, {1, 9}, {4, 15}}) {
      const std::string shape = "\"shape\": [" + std::to_string(height) + ", " + std::to_string(width) + ", " +
                                std::to_string(channels) + "]";
      const auto smooth = Run(image, "{" + shape + R"(, "resize": "Bilinear"})").Values<float>();
      const auto nearest = Run(image, "{" + shape + R"(, "resize": "Nearest"})").Values<uint8_t>();
      ASSERT_EQ(smooth.size(), static_cast<size_t>(height * width * channels));
      ASSERT_EQ(nearest.size(), smooth.size());
      const auto pixel = [&](int y, int x, int c) {
        return pixels[static_cast<size_t>(
            (std::clamp(y, 0, kHeight - 1) * kWidth + std::clamp(x, 0, kWidth - 1)) * channels + c)];
      };
      size_t at = 0;
      for (int i = 0; i < height; ++i) {
        for (int j = 0; j < width; ++j) {
          // Centres of pixels lie at a half.
          const double y = (i + 0.5) * kHeight / height;
          const double x = (j + 0.5) * kWidth / width;
          const int top = static_cast<int>(std::floor(y - 0.5));
          const int left = static_cast<int>(std::floor(x - 0.5));
          const double down = y - 0.5 - top;
          const double right = x - 0.5 - left;
          for (int c = 0; c < channels; ++c, ++at) {
            EXPECT_EQ(nearest[at], pixel(static_cast<int>(y), static_cast<int>(x), c)) << shape << " value " << at;
            const double between = (pixel(top, left, c) * (1 - right) + pixel(top, left + 1, c) * right) * (1 - down) +
                                   (pixel(top + 1, left, c) * (1 - right) + pixel(top + 1, left + 1, c) * right) * down;
            EXPECT_NEAR(smooth[at], between, 1e-3) << shape << " value " << at;
          }
        }
      }
    }
  }
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
