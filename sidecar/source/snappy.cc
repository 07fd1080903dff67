// snappy's framing format (framing_format.txt of snappy), a sequence of chunks:
//
//   uint8   type      0xff: "sNaPpY", which begins each stream; 0x00: compressed data; 0x01: data as they are;
//                     0x80 to 0xfe: to be skipped; the rest: not to be skipped, and of no known meaning
//   uint24  length    of what follows, little-endian
//   uint32  checksum  of data, uncompressed: the masked CRC-32C that TFRecord has too
//   byte    data      at most 65536, uncompressed
#include <snappy-c.h>

#include <cstring>
#include <vector>

#include "sidecar/source/codec.h"
#include "sidecar/source/crc32c.h"

namespace headrace::side {
namespace {

constexpr std::string_view kStreamBegin{"\xff\x06\x00\x00sNaPpY", 10};
constexpr size_t kHeaderBytes = 4;
constexpr size_t kChecksumBytes = 4;
constexpr size_t kMostData = 65536;

enum ChunkType : uint8_t { kCompressed = 0x00, kPlain = 0x01, kFirstSkipped = 0x80, kStream = 0xff };

class SnappyDecompressor : public Decompressor {
 public:
  Result<size_t> Read(CompressedInput* in, uint8_t* out, size_t n) override {
    if (at_ == kept_.size()) {
      ASSIGN_OR_RETURN(const size_t written, NextChunk(in, out, n));
      if (at_ == kept_.size()) return written;  // the end, or all that the chunk holds
    }
    const size_t taken = std::min(n, kept_.size() - at_);
    std::memcpy(out, kept_.data() + at_, taken);
    at_ += taken;
    return taken;
  }

 private:
  // The next chunk that holds data: to `out`, of which the number of bytes is returned, or to kept_ if there are more
  // than n. 0 and nothing kept: the end.
  Result<size_t> NextChunk(CompressedInput* in, uint8_t* out, size_t n) {
    while (true) {
      ASSIGN_OR_RETURN(auto bytes, in->Peek(kHeaderBytes));
      if (bytes.empty()) return size_t{0};
      if (bytes.size() < kHeaderBytes) return in->Truncated("snappy chunk");
      const uint8_t type = bytes[0];
      const size_t length = bytes[1] | size_t{bytes[2]} << 8 | size_t{bytes[3]} << 16;
      if (type >= kFirstSkipped && type < kStream) {
        RETURN_IF_ERROR(PassOver(in, kHeaderBytes + length));
        continue;
      }
      if (type > kPlain && type < kFirstSkipped) {
        return in->Broken("a snappy chunk of type " + std::to_string(type) + ", which has no meaning yet");
      }
      const size_t most = kChecksumBytes + (type == kPlain ? kMostData : snappy_max_compressed_length(kMostData));
      if (length > most) return in->Broken("a snappy chunk of " + std::to_string(length) + " bytes is too long");
      ASSIGN_OR_RETURN(bytes, in->Peek(kHeaderBytes + length));
      if (bytes.size() < kHeaderBytes + length) return in->Truncated("snappy chunk");
      if (type == kStream) {
        if (!BeginsWith(bytes, kStreamBegin)) return in->Broken("not the beginning of a snappy stream");
        in->Consume(kHeaderBytes + length);
        continue;
      }
      ASSIGN_OR_RETURN(const size_t written, Unpack(in, type, bytes.subspan(kHeaderBytes, length), out, n));
      in->Consume(kHeaderBytes + length);
      if (written > 0 || !kept_.empty()) return written;
    }
  }

  Result<size_t> Unpack(CompressedInput* in, uint8_t type, std::span<const uint8_t> chunk, uint8_t* out, size_t n) {
    kept_.clear();
    at_ = 0;
    if (chunk.size() < kChecksumBytes) return in->Broken("a snappy chunk is too short for its checksum");
    const std::span<const uint8_t> data = chunk.subspan(kChecksumBytes);
    const auto* const packed = reinterpret_cast<const char*>(data.data());
    size_t size = data.size();
    if (type == kCompressed &&
        (snappy_uncompressed_length(packed, data.size(), &size) != SNAPPY_OK || size > kMostData)) {
      return in->Broken("not snappy data");
    }
    if (size > n) kept_.resize(size);
    uint8_t* const to = size > n ? kept_.data() : out;
    if (type == kPlain) {
      if (size > 0) std::memcpy(to, data.data(), size);
    } else if (snappy_uncompress(packed, data.size(), reinterpret_cast<char*>(to), &size) != SNAPPY_OK) {
      return in->Broken("not snappy data");
    }
    uint32_t checksum;
    std::memcpy(&checksum, chunk.data(), sizeof checksum);
    if (checksum != MaskedCrc32c(to, size)) {
      return in->Broken("the checksum of a snappy chunk does not match: the file is damaged");
    }
    return kept_.empty() ? size : size_t{0};
  }

  static Status PassOver(CompressedInput* in, size_t n) {
    while (n > 0) {
      ASSIGN_OR_RETURN(const auto bytes, in->Peek(1));
      if (bytes.empty()) return in->Truncated("snappy chunk");
      const size_t passed = std::min(n, bytes.size());
      in->Consume(passed);
      n -= passed;
    }
    return {};
  }

  std::vector<uint8_t> kept_;  // of a chunk that holds more than was asked for
  size_t at_ = 0;              // what of kept_ was read
};

}  // namespace

const Codec kSnappyCodec = {Compression::kSnappy,
                            [](std::span<const uint8_t> first) { return BeginsWith(first, kStreamBegin); },
                            []() -> std::unique_ptr<Decompressor> { return std::make_unique<SnappyDecompressor>(); }};

}  // namespace headrace::side
