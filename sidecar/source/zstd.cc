// RFC 8878: frames, and skippable frames between them.
#include <zstd.h>

#include "sidecar/source/codec.h"

namespace headrace::side {
namespace {

uint32_t LoadLittleEndian(std::span<const uint8_t> bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value |= uint32_t{bytes[at + i]} << (8 * i);
  return value;
}

// LZ4 has the same skippable frames: a file that begins with some is of the format of the frame after them, and zstd's,
// whose parallel and seekable writers make such files, where that is too far away to be seen.
bool Begins(std::span<const uint8_t> first) {
  size_t at = 0;
  bool skips = false;
  while (at + 8 <= first.size() && (LoadLittleEndian(first, at) & 0xfffffff0) == 0x184d2a50) {
    skips = true;
    at += 8 + size_t{LoadLittleEndian(first, at + 4)};
  }
  if (at + 4 > first.size()) return skips;
  return BeginsWith(first.subspan(at), "\x28\xb5\x2f\xfd");
}

class ZstdDecompressor : public Decompressor {
 public:
  ZstdDecompressor() : context_(ZSTD_createDCtx(), ZSTD_freeDCtx) {}

  Result<size_t> Read(CompressedInput* in, uint8_t* out, size_t n) override {
    ZSTD_outBuffer output = {out, n, 0};
    while (output.pos == 0) {
      ASSIGN_OR_RETURN(const auto bytes, in->Peek(1));
      if (bytes.empty() && between_frames_) break;
      ZSTD_inBuffer input = {bytes.data(), bytes.size(), 0};
      const size_t rc = ZSTD_decompressStream(context_.get(), &output, &input);
      in->Consume(input.pos);
      if (ZSTD_isError(rc) != 0) {
        return in->Broken(std::string("not zstd data that can be read (") + ZSTD_getErrorName(rc) + ")");
      }
      between_frames_ = rc == 0;
      if (bytes.empty() && output.pos == 0) return in->Truncated("zstd frame");
    }
    return output.pos;
  }

 private:
  const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context_;
  bool between_frames_ = false;  // where the file may end
};

}  // namespace

const Codec kZstdCodec = {Compression::kZstd, Begins,
                          []() -> std::unique_ptr<Decompressor> { return std::make_unique<ZstdDecompressor>(); }};

}  // namespace headrace::side
