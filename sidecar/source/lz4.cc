// The LZ4 frame format, as lz4(1) writes it: frames, and skippable frames between them.
#include <lz4frame.h>

#include "sidecar/source/codec.h"

namespace headrace::side {
namespace {

// A file of skippable frames first is told from zstd's by zstd.cc.
bool Begins(std::span<const uint8_t> first) {
  return BeginsWith(first, "\x04\x22\x4d\x18") || BeginsWith(first, "\x02\x21\x4c\x18");
}

class Lz4Decompressor : public Decompressor {
 public:
  Lz4Decompressor() {
    LZ4F_dctx* context = nullptr;
    LZ4F_createDecompressionContext(&context, LZ4F_VERSION);
    context_.reset(context);
  }

  Result<size_t> Read(CompressedInput* in, uint8_t* out, size_t n) override {
    size_t written = 0;
    while (written == 0) {
      ASSIGN_OR_RETURN(const auto bytes, in->Peek(1));
      if (bytes.empty() && between_frames_) break;
      written = n;
      size_t taken = bytes.size();
      const size_t rc = LZ4F_decompress(context_.get(), out, &written, bytes.data(), &taken, nullptr);
      in->Consume(taken);
      if (LZ4F_isError(rc) != 0) {
        const bool legacy = BeginsWith(bytes, "\x02\x21\x4c\x18");
        return in->Broken(legacy ? "LZ4's legacy format is not read: lz4(1) writes frames without -l"
                                 : std::string("not LZ4 data that can be read (") + LZ4F_getErrorName(rc) + ")");
      }
      between_frames_ = rc == 0;
      if (bytes.empty() && written == 0) return in->Truncated("LZ4 frame");
    }
    return written;
  }

 private:
  struct Free {
    void operator()(LZ4F_dctx* context) const { LZ4F_freeDecompressionContext(context); }
  };
  std::unique_ptr<LZ4F_dctx, Free> context_;
  bool between_frames_ = false;  // where the file may end
};

}  // namespace

const Codec kLz4Codec = {Compression::kLz4, Begins,
                         []() -> std::unique_ptr<Decompressor> { return std::make_unique<Lz4Decompressor>(); }};

}  // namespace headrace::side
