// bzip2: one stream after another, as bzip2(1) and pbzip2(1) write them.
#include <bzlib.h>

#include <algorithm>

#include "sidecar/source/codec.h"

namespace headrace::side {
namespace {

constexpr size_t kMaxStep = 1 << 30;  // libbz2 counts in 32 bits

// "BZh", the size of blocks, and the first block's magic, or that of a stream without blocks: digits of pi and of its
// square root.
bool Begins(std::span<const uint8_t> first) {
  return BeginsWith(first, "BZh") && first.size() >= 10 && first[3] >= '1' && first[3] <= '9' &&
         (BeginsWith(first.subspan(4), "\x31\x41\x59\x26\x53\x59") ||
          BeginsWith(first.subspan(4), "\x17\x72\x45\x38\x50\x90"));
}

class Bzip2Decompressor : public Decompressor {
 public:
  Bzip2Decompressor() = default;
  ~Bzip2Decompressor() override { BZ2_bzDecompressEnd(&stream_); }
  Bzip2Decompressor(const Bzip2Decompressor&) = delete;
  Bzip2Decompressor& operator=(const Bzip2Decompressor&) = delete;

  Result<size_t> Read(CompressedInput* in, uint8_t* out, size_t n) override {
    const size_t wanted = std::min(n, kMaxStep);
    stream_.next_out = reinterpret_cast<char*>(out);
    stream_.avail_out = static_cast<unsigned>(wanted);
    while (stream_.avail_out == wanted) {
      ASSIGN_OR_RETURN(const auto bytes, in->Peek(1));
      if (bytes.empty() && between_streams_) break;
      if (between_streams_) {
        BZ2_bzDecompressEnd(&stream_);
        if (BZ2_bzDecompressInit(&stream_, 0, 0) != BZ_OK) return Exhausted("no memory for bzip2");
      }
      stream_.next_in = const_cast<char*>(reinterpret_cast<const char*>(bytes.data()));
      stream_.avail_in = static_cast<unsigned>(bytes.size());
      const int rc = BZ2_bzDecompress(&stream_);
      in->Consume(bytes.size() - stream_.avail_in);
      if (rc == BZ_DATA_ERROR) return in->Broken("a bzip2 checksum does not match, or a block is no bzip2 data");
      if (rc != BZ_OK && rc != BZ_STREAM_END) {
        return in->Broken("not bzip2 data (libbz2 error " + std::to_string(rc) + ")");
      }
      between_streams_ = rc == BZ_STREAM_END;
      if (bytes.empty() && stream_.avail_out == wanted && !between_streams_) return in->Truncated("bzip2 stream");
    }
    return wanted - stream_.avail_out;
  }

 private:
  bz_stream stream_{};
  bool between_streams_ = true;  // where the file may end
};

}  // namespace

const Codec kBzip2Codec = {Compression::kBzip2, Begins,
                           []() -> std::unique_ptr<Decompressor> { return std::make_unique<Bzip2Decompressor>(); }};

}  // namespace headrace::side
