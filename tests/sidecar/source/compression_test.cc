#include "sidecar/source/compression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "sidecar/source/codec.h"
#include "tests/sidecar/source/compressed.h"
#include "tests/sidecar/source/memory_stream.h"

namespace headrace::side {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

struct Content {
  std::string bytes;
  Status status;
};

// All of the file, `step` bytes at a time.
Content Read(const std::string& file, Compression compression = Compression::kAuto, size_t step = 10007) {
  Content content;
  auto stream = Decompress(std::make_unique<MemoryStream>("data", file), compression);
  content.status = stream.status();
  std::string out(step, '\0');
  while (content.status.ok()) {
    const auto read = (*stream)->Read(reinterpret_cast<uint8_t*>(out.data()), step);
    content.status = read.status();
    if (!read.ok() || *read == 0) break;
    content.bytes.append(out, 0, *read);
  }
  return content;
}

Compression Named(const std::string& name) {
  for (const Compression compression :
       {Compression::kGzip, Compression::kZstd, Compression::kLz4, Compression::kBzip2, Compression::kSnappy}) {
    if (CompressionName(compression) == name) return compression;
  }
  ADD_FAILURE() << name;
  return Compression::kNone;
}

// Some of it compresses well and some does not; larger than any buffer on the way.
std::string SomeBytes(size_t size = 1500000) {
  std::mt19937 random(7);
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i / 50000 % 2 == 0 ? random() : i / 100);
  return bytes;
}

class EveryCompression : public testing::TestWithParam<Writer> {
 protected:
  std::string Compress(const std::string& bytes) const { return GetParam().compress(bytes); }
};

INSTANTIATE_TEST_SUITE_P(Compression, EveryCompression, testing::ValuesIn(kWriters),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(EveryCompression, IsFoundByItsContentAndReadInStepsOfAnySize) {
  const std::string bytes = SomeBytes();
  const std::string file = Compress(bytes);
  for (const size_t step : {size_t{1000}, size_t{65536}, size_t{10000000}}) {
    const Content content = Read(file, Compression::kAuto, step);
    EXPECT_TRUE(content.status.ok()) << content.status.message();
    EXPECT_TRUE(content.bytes == bytes);
  }
  EXPECT_TRUE(Read(file, Named(GetParam().name)).bytes == bytes);
  EXPECT_TRUE(Read(file, Compression::kNone).bytes == file);
}

TEST_P(EveryCompression, GoesOnInWhatFollows) {
  const std::string bytes = SomeBytes(200000);
  const Content content = Read(Compress(bytes.substr(0, 70001)) + Compress("") + Compress(bytes.substr(70001)));
  EXPECT_TRUE(content.status.ok()) << content.status.message();
  EXPECT_TRUE(content.bytes == bytes);
}

TEST_P(EveryCompression, HoldsNothing) {
  const Content content = Read(Compress(""));
  EXPECT_TRUE(content.status.ok()) << content.status.message();
  EXPECT_EQ(content.bytes, "");
  EXPECT_TRUE(Read("", Named(GetParam().name)).status.ok()) << "an empty file is empty however it is compressed";
}

TEST_P(EveryCompression, NamesFileAndOffsetWhereverItIsCut) {
  const std::string bytes = SomeBytes(100);
  const std::string file = Compress(bytes);
  const std::string two = file + file;
  for (size_t size = 1; size < two.size(); ++size) {
    const Content content = Read(two.substr(0, size), Named(GetParam().name));
    // What ends with a chunk is a whole file for snappy.
    if (content.status.ok() && (content.bytes == "" || content.bytes == bytes)) {
      EXPECT_TRUE(size % file.size() == 0 || (GetParam().name == std::string("Snappy") && size % file.size() == 10));
      continue;
    }
    ASSERT_EQ(content.status.code(), Code::kCorrupt) << size;
    EXPECT_THAT(content.status.message(), StartsWith("data: at ")) << size;
    if (size < 64) continue;  // the first bytes may not tell what it is
    EXPECT_THAT(content.status.message(), AllOf(HasSubstr("compressed byte "), HasSubstr("truncated"))) << size;
  }
}

TEST_P(EveryCompression, FindsEveryFlippedBitThatMatters) {
  const std::string bytes = SomeBytes(100);
  const std::string file = Compress(bytes);
  for (size_t bit = 0; bit < file.size() * 8; ++bit) {
    // Makes of snappy's first chunk one that all readers must skip.
    if (GetParam().name == std::string("Snappy") && bit == 10 * 8 + 7) continue;
    std::string damaged = file;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    const Content content = Read(damaged, Named(GetParam().name));
    if (content.status.ok()) {
      EXPECT_TRUE(content.bytes == bytes) << bit;
    } else {
      EXPECT_EQ(content.status.code(), Code::kCorrupt) << bit;
      EXPECT_THAT(content.status.message(), StartsWith("data: at ")) << bit;
    }
  }
}

TEST_P(EveryCompression, RefusesWhatComesAfterIt) {
  const Content content = Read(Compress("hello") + "and something else");
  EXPECT_EQ(content.status.code(), Code::kCorrupt);
  EXPECT_THAT(content.status.message(), HasSubstr("data: at compressed byte "));
}

TEST_P(EveryCompression, SaysWhatOtherContentLooksLike) {
  for (const Writer& other : kWriters) {
    if (other.name == std::string(GetParam().name)) continue;
    EXPECT_EQ(Read(other.compress("hello"), Named(GetParam().name)).status.message(),
              std::string("data: at byte 0: spec.source.files.compression is ") + GetParam().name +
                  ", and the file looks like " + other.name + "; use Auto or " + other.name);
  }
  EXPECT_THAT(Read("hello", Named(GetParam().name)).status.message(),
              AllOf(StartsWith("data: at byte 0: "), HasSubstr("looks like no compression that is read"),
                    EndsWith(std::string("; use None, or write it again as ") + GetParam().name)));
}

TEST(Compression, LeavesWhatIsNotCompressedAsItIs) {
  for (const std::string bytes : {"", "B", "BZh9 is not bzip2", "hello", "\x1f\x8b\x09 is not deflate"}) {
    const Content content = Read(bytes);
    EXPECT_TRUE(content.status.ok()) << content.status.message();
    EXPECT_EQ(content.bytes, bytes);
  }
}

TEST(Compression, SkipsFramesThatHoldNothing) {
  const std::string far(1000, 'x');
  for (const std::string& skipped : {SkippableFrame(""), SkippableFrame("four") + SkippableFrame("eight bytes")}) {
    EXPECT_EQ(Read(skipped + ZstdOf("hello") + SkippableFrame(far) + ZstdOf(" world")).bytes, "hello world");
    EXPECT_EQ(Read(Lz4Of("hello") + SkippableFrame(far) + Lz4Of(" world")).bytes, "hello world");
  }
  EXPECT_EQ(Read(SkippableFrame(far) + ZstdOf("hello")).bytes, "hello");
  EXPECT_EQ(Read(SnappyOf("hello") + SnappyChunk(0xfe, far) + SnappyChunk(0x80, "x") + SnappyOf(" world")).bytes,
            "hello world");
}

TEST(Compression, RefusesSnappyChunksThatAreNone) {
  const std::string begin = SnappyOf("");
  const std::string data(65537, 'a');
  for (const auto& [chunk, says] : std::vector<std::pair<std::string, std::string>>{
           {SnappyChunk(0x02, ""), "a snappy chunk of type 2, which has no meaning yet"},
           {SnappyChunk(0xff, "sNaPpy"), "not the beginning of a snappy stream"},
           {SnappyChunk(0x01, SnappyChecksum(data) + data), "a snappy chunk of 65541 bytes is too long"},
           {SnappyChunk(0x00, SnappyChecksum(data) + SnappyBlock(data)), "not snappy data"},
           {SnappyChunk(0x00, "abc"), "a snappy chunk is too short for its checksum"},
           {SnappyChunk(0x01, "abcdefgh"), "the checksum of a snappy chunk does not match"}}) {
    // 10 bytes before the first chunk, and 15 with its header and checksum before this one.
    const Content content = Read(begin + SnappyChunk(0x01, SnappyChecksum("a") + "a") + chunk);
    EXPECT_EQ(content.bytes, "a");
    EXPECT_THAT(content.status.message(), StartsWith("data: at compressed byte 19: " + says));
  }
}

TEST(Compression, RefusesHadoopsSnappyAndOldLz4InWords) {
  // Hadoop's BlockCompressorStream: big-endian lengths of the block and of its compressed chunk.
  const std::string chunk = SnappyBlock("hello");
  const std::string hadoop = std::string("\0\0\0\x05\0\0\0", 7) + static_cast<char>(chunk.size()) + chunk;
  EXPECT_THAT(Read(hadoop, Compression::kSnappy).status.message(), HasSubstr("not in Hadoop's blocks"));
  EXPECT_THAT(Read("\x02\x21\x4c\x18 and so on").status.message(),
              StartsWith("data: at compressed byte 0: LZ4's legacy format is not read"));
}

}  // namespace
}  // namespace headrace::side
