// What a compression is: one file in this folder and one line in codecs.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/spec/input_spec.h"
#include "sidecar/source/raw_stream.h"

namespace headrace::side {

// The compressed bytes of one file, in order.
class CompressedInput {
 public:
  static constexpr size_t kMostBytes = 256 << 10;

  explicit CompressedInput(std::unique_ptr<RawStream> file);

  // The bytes that follow: at least n of them unless the file ends before, and none at its end. Valid until the next
  // Peek. REQUIRES: n <= kMostBytes. Errors: of the file.
  Result<std::span<const uint8_t>> Peek(size_t n);
  // REQUIRES: n of the bytes that were last peeked at are left.
  void Consume(size_t n) { begin_ += n; }
  // Corrupt: says the file, the place of the first byte that is not consumed, `what`, and the remedy.
  Status Broken(const std::string& what) const;
  Status Truncated(const std::string& inside) const;  // Broken: the file ends inside that

 private:
  const std::unique_ptr<RawStream> file_;
  const std::unique_ptr<uint8_t[]> buffer_;
  size_t begin_ = 0;  // of the bytes in buffer_ that are not consumed
  size_t end_ = 0;
  uint64_t read_ = 0;  // bytes, from the file
  bool ended_ = false;
};

// Decompresses one file, of which each part (a gzip member, a frame) may be followed by another.
class Decompressor {
 public:
  virtual ~Decompressor() = default;
  // Writes up to n bytes to `out` and returns how many; 0 is the end of the file. REQUIRES: n > 0. Errors: Corrupt, by
  // in->Broken; those of `in`.
  virtual Result<size_t> Read(CompressedInput* in, uint8_t* out, size_t n) = 0;
};

struct Codec {
  Compression compression = Compression::kNone;
  // Whether a file that begins so is compressed by it. `first` is kFirstBytes long, or the whole file.
  bool (*begins)(std::span<const uint8_t> first) = nullptr;
  std::unique_ptr<Decompressor> (*make)() = nullptr;
};
inline constexpr size_t kFirstBytes = 64;

inline bool BeginsWith(std::span<const uint8_t> bytes, std::string_view magic) {
  return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()).substr(0, magic.size()) == magic;
}

// Those that are read.
std::span<const Codec* const> Codecs();

extern const Codec kGzipCodec;
extern const Codec kZstdCodec;
extern const Codec kLz4Codec;
extern const Codec kBzip2Codec;
extern const Codec kSnappyCodec;

}  // namespace headrace::side
