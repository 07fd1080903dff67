// RFC 1952: one member after another, as gzip(1) reads them; each member's CRC is checked.
#include <isa-l/igzip_lib.h>

#include <algorithm>

#include "sidecar/source/codec.h"

namespace headrace::side {
namespace {

constexpr size_t kMaxStep = 1 << 30;  // isa-l counts in 32 bits

class GzipDecompressor : public Decompressor {
 public:
  GzipDecompressor() {
    isal_inflate_init(&state_);
    state_.crc_flag = ISAL_GZIP;
  }

  Result<size_t> Read(CompressedInput* in, uint8_t* out, size_t n) override {
    const size_t wanted = std::min(n, kMaxStep);
    state_.next_out = out;
    state_.avail_out = static_cast<uint32_t>(wanted);
    while (state_.avail_out == wanted) {
      ASSIGN_OR_RETURN(const auto bytes, in->Peek(1));
      if (bytes.empty()) {
        if (between_members_) break;
        return in->Truncated("gzip member");
      }
      if (between_members_) {
        isal_inflate_reset(&state_);
        state_.crc_flag = ISAL_GZIP;
      }
      state_.next_in = const_cast<uint8_t*>(bytes.data());
      state_.avail_in = static_cast<uint32_t>(bytes.size());
      const int rc = isal_inflate(&state_);
      in->Consume(bytes.size() - state_.avail_in);
      if (rc == ISAL_INCORRECT_CHECKSUM) return in->Broken("the gzip checksum does not match: the file is damaged");
      if (rc != ISAL_DECOMP_OK) return in->Broken("not gzip data (isa-l error " + std::to_string(rc) + ")");
      between_members_ = state_.block_state == ISAL_BLOCK_FINISH;
    }
    return wanted - state_.avail_out;
  }

 private:
  inflate_state state_{};
  bool between_members_ = false;  // where the file may end
};

}  // namespace

const Codec kGzipCodec = {Compression::kGzip,
                          // Two bytes of magic, and deflate, the only method.
                          [](std::span<const uint8_t> first) { return BeginsWith(first, "\x1f\x8b\x08"); },
                          []() -> std::unique_ptr<Decompressor> { return std::make_unique<GzipDecompressor>(); }};

}  // namespace headrace::side
