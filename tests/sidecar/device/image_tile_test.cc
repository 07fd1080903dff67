// The image kernel's arithmetic, block by block and thread by thread on the CPU, held to the maps.
#include "sidecar/device/image_tile.h"

#include <gtest/gtest.h>

#include "tests/sidecar/device/image_cpu.h"
#include "tests/sidecar/device/program_images.h"
#include "tests/sidecar/mapped_images.h"

namespace headrace::device {
namespace {

using nlohmann::json;
using side::MappedImages;
using side::Normalised;

constexpr int64_t kImages = 2;

// The kernel of `channels` (0: of any), with `threads` in a block.
std::vector<uint8_t> Run(int channels, const PixelProgram& program, const std::vector<uint8_t>& images, int threads) {
  // Aligned to vectors, as operator new does it.
  std::vector<uint8_t> out(images.size() * static_cast<size_t>(ValueBytes(program.result)));
  const int64_t blocks = kImages * (channels == 0 ? program.channels : 1) * TilesOf(program.pixels);
  for (int64_t block = 0; block < blocks; ++block) {
    RunImageBlock(channels, program, block, threads, images.data(), out.data());
  }
  return out;
}

void Check(const json& shape, const json& maps, DType within, DType result) {
  const MappedImages images(shape, maps);
  ASSERT_TRUE(images.pixel_maps());
  const auto program = ProgramOf(*images.pixel_maps());
  ASSERT_TRUE(program);
  ASSERT_TRUE(program->within == within && program->result == result && program->channels_first);
  const std::vector<uint8_t> bytes = images.OneByOne(kImages, 0)[0];
  const std::vector<uint8_t> expected = images.OneByOne(kImages)[0];
  EXPECT_EQ(Made(*program, bytes), expected) << "what other tests go by: " << shape << maps;
  for (const int threads : {32, 96, 256}) {
    EXPECT_EQ(Run(0, *program, bytes, threads), expected) << shape << maps;
    const int64_t channels = program->channels;
    if (!IsWhole(program->pixels) || (channels != 1 && channels != 3 && channels != 4)) continue;
    EXPECT_EQ(Run(static_cast<int>(channels), *program, bytes, threads), expected) << shape << maps;
  }
}

// Tiles: part of one, one, and several of which the last is shorter.
const json kShapes = {{4, 4, 3}, {64, 64, 3}, {96, 94, 3}, {5, 7, 3}, {67, 71, 3}};

TEST(ImageTile, MakesOfPhotographsWhatTheMapsMake) {
  for (const json& shape : kShapes) {
    const json first = {2, 0, 1};
    Check(shape, Normalised("float32", "float32", first), DType::kFloat32, DType::kFloat32);
    Check(shape, Normalised("float32", "float16", first), DType::kFloat32, DType::kFloat16);
    Check(shape, Normalised("float32", "bfloat16", first), DType::kFloat32, DType::kBfloat16);
    Check(shape, Normalised("float16", "float16", first), DType::kFloat16, DType::kFloat16);
    Check(shape, Normalised("bfloat16", "bfloat16", first), DType::kBfloat16, DType::kBfloat16);
  }
}

TEST(ImageTile, MakesOfOtherChannelsWhatTheMapsMake) {
  const json alike = json::parse(R"([{"cast": "float32"}, {"scale": -0.1}, {"transpose": [2, 0, 1]}])");
  for (const int channels : {1, 2, 4, 7}) {
    Check({68, 64, channels}, alike, DType::kFloat32, DType::kFloat32);
    Check({3, 5, channels}, alike, DType::kFloat32, DType::kFloat32);
  }
  const json four = json::parse(
      R"([{"cast": "float16"}, {"scales": [1, 2, 3, 4], "offsets": [-1, -2, -3, -4]}, {"transpose": [2, 0, 1]}])");
  Check({68, 64, 4}, four, DType::kFloat16, DType::kFloat16);
  // A cast and nothing else.
  const json none = json::parse(R"([{"transpose": [2, 0, 1]}, {"cast": "bfloat16"}])");
  Check({32, 32, 3}, none, DType::kBfloat16, DType::kBfloat16);
}

}  // namespace
}  // namespace headrace::device
