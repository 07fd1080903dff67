// The image kernel's arithmetic, block by block and thread by thread on the CPU, held to the maps.
#include "sidecar/device/image_tile.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>

#include "common/base/half.h"
#include "tests/sidecar/mapped_images.h"

namespace headrace::device {
namespace {

using nlohmann::json;
using side::MappedImages;
using side::Normalised;

struct Cpu {
  static float Multiply(float a, float b) { return a * b; }
  static float Add(float a, float b) { return a + b; }
  static uint32_t BitsOf(float value) { return std::bit_cast<uint32_t>(value); }
  static float OfBits(uint32_t bits) { return std::bit_cast<float>(bits); }
  static uint16_t Float16Of(float value) { return ToFloat16(value); }
  static float OfFloat16(uint16_t bits) { return FromFloat16(bits); }
  static uint16_t Bfloat16Of(float value) { return ToBfloat16(value); }
  static float OfBfloat16(uint16_t bits) { return FromBfloat16(bits); }
};

constexpr int64_t kImages = 2;

std::vector<Vector> Vectors(const std::vector<uint8_t>& bytes) {
  std::vector<Vector> vectors((bytes.size() + kVectorBytes - 1) / kVectorBytes);
  std::memcpy(vectors.data(), bytes.data(), bytes.size());
  return vectors;
}

std::vector<uint8_t> Bytes(const void* from, size_t size) {
  std::vector<uint8_t> bytes(size);
  std::memcpy(bytes.data(), from, size);
  return bytes;
}

// The kernel, with `threads` in a block.
template <int Channels, DType Within, DType Into>
std::vector<uint8_t> Quick(const PixelProgram& program, const std::vector<uint8_t>& images, int threads) {
  const std::vector<Vector> in = Vectors(images);
  std::vector<Vector> out(images.size() * ValueBytes(Into) / kVectorBytes);
  for (int64_t block = 0; block < kImages * TilesOf(program.pixels); ++block) {
    const Tile tile = TileOf(block, program.pixels);
    std::vector<Vector> staged(kTilePixels * Channels / kVectorBytes);
    for (int thread = 0; thread < threads; ++thread) {
      Stage<Channels>(in.data(), program.pixels, tile, thread, threads, staged.data());
    }
    std::vector<uint32_t> words(staged.size() * 4);
    std::memcpy(words.data(), staged.data(), words.size() * sizeof words[0]);
    for (int thread = 0; thread < threads; ++thread) {
      Write<Cpu, Channels, Within, Into>(words.data(), program, tile, thread, threads, out.data());
    }
  }
  return Bytes(out.data(), out.size() * sizeof(Vector));
}

template <DType Within, DType Into, typename Value>
std::vector<uint8_t> Planes(const PixelProgram& program, const std::vector<uint8_t>& images, int threads) {
  std::vector<Value> out(images.size());
  for (int64_t block = 0; block < kImages * program.channels * TilesOf(program.pixels); ++block) {
    const Tile tile = TileOf(block, program.pixels);
    for (int thread = 0; thread < threads; ++thread) {
      WritePlane<Cpu, Within, Into>(images.data(), program, tile, thread, threads, out.data());
    }
  }
  return Bytes(out.data(), out.size() * sizeof(Value));
}

template <DType Within, DType Into>
void Check(const json& shape, const json& maps) {
  const MappedImages images(shape, maps);
  ASSERT_TRUE(images.pixel_maps());
  const auto program = ProgramOf(*images.pixel_maps());
  ASSERT_TRUE(program);
  ASSERT_TRUE(program->within == Within && program->result == Into && program->channels_first);
  const std::vector<uint8_t> bytes = images.OneByOne(kImages, 0)[0];
  const std::vector<uint8_t> expected = images.OneByOne(kImages)[0];
  using Value = std::conditional_t<ValueBytes(Into) == 4, uint32_t, uint16_t>;
  for (const int threads : {32, 96, 256}) {
    EXPECT_EQ((Planes<Within, Into, Value>(*program, bytes, threads)), expected) << shape << maps;
    if (!IsWhole(program->pixels)) continue;
    switch (program->channels) {
      case 1: EXPECT_EQ((Quick<1, Within, Into>(*program, bytes, threads)), expected) << shape << maps; break;
      case 3: EXPECT_EQ((Quick<3, Within, Into>(*program, bytes, threads)), expected) << shape << maps; break;
      case 4: EXPECT_EQ((Quick<4, Within, Into>(*program, bytes, threads)), expected) << shape << maps; break;
    }
  }
}

// Tiles: part of one, one, and several of which the last is shorter.
const json kShapes = {{4, 4, 3}, {64, 64, 3}, {96, 94, 3}, {5, 7, 3}, {67, 71, 3}};

TEST(ImageTile, MakesOfPhotographsWhatTheMapsMake) {
  for (const json& shape : kShapes) {
    const json first = {2, 0, 1};
    Check<DType::kFloat32, DType::kFloat32>(shape, Normalised("float32", "float32", first));
    Check<DType::kFloat32, DType::kFloat16>(shape, Normalised("float32", "float16", first));
    Check<DType::kFloat32, DType::kBfloat16>(shape, Normalised("float32", "bfloat16", first));
    Check<DType::kFloat16, DType::kFloat16>(shape, Normalised("float16", "float16", first));
    Check<DType::kBfloat16, DType::kBfloat16>(shape, Normalised("bfloat16", "bfloat16", first));
  }
}

TEST(ImageTile, MakesOfOtherChannelsWhatTheMapsMake) {
  const json alike = json::parse(R"([{"cast": "float32"}, {"scale": -0.1}, {"transpose": [2, 0, 1]}])");
  for (const int channels : {1, 2, 4, 7}) {
    Check<DType::kFloat32, DType::kFloat32>({68, 64, channels}, alike);
    Check<DType::kFloat32, DType::kFloat32>({3, 5, channels}, alike);
  }
  const json four = json::parse(
      R"([{"cast": "float16"}, {"scales": [1, 2, 3, 4], "offsets": [-1, -2, -3, -4]}, {"transpose": [2, 0, 1]}])");
  Check<DType::kFloat16, DType::kFloat16>({68, 64, 4}, four);
  // A cast and nothing else.
  const json none = json::parse(R"([{"transpose": [2, 0, 1]}, {"cast": "bfloat16"}])");
  Check<DType::kBfloat16, DType::kBfloat16>({32, 32, 3}, none);
}

}  // namespace
}  // namespace headrace::device
