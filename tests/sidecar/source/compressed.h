// Compresses bytes for tests, by the libraries' own writers.
#pragma once

#include <bzlib.h>
#include <gtest/gtest.h>
#include <lz4frame.h>
#include <snappy-c.h>
#include <zstd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/sidecar/files.h"

namespace headrace::side {

// With the content's checksum, which zstd(1) writes too.
inline std::string ZstdOf(const std::string& bytes) {
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  std::string out(ZSTD_compressBound(bytes.size()), '\0');
  const size_t size = ZSTD_compress2(context, out.data(), out.size(), bytes.data(), bytes.size());
  EXPECT_EQ(ZSTD_isError(size), 0u);
  ZSTD_freeCCtx(context);
  return out.substr(0, size);
}

inline std::string Lz4Of(const std::string& bytes) {
  LZ4F_preferences_t preferences{};
  preferences.frameInfo.contentChecksumFlag = LZ4F_contentChecksumEnabled;
  std::string out(LZ4F_compressFrameBound(bytes.size(), &preferences), '\0');
  const size_t size = LZ4F_compressFrame(out.data(), out.size(), bytes.data(), bytes.size(), &preferences);
  EXPECT_EQ(LZ4F_isError(size), 0u);
  return out.substr(0, size);
}

inline std::string Bzip2Of(const std::string& bytes) {
  std::string out(bytes.size() + bytes.size() / 100 + 600, '\0');
  auto size = static_cast<unsigned>(out.size());
  EXPECT_EQ(BZ2_bzBuffToBuffCompress(out.data(), &size, const_cast<char*>(bytes.data()),
                                     static_cast<unsigned>(bytes.size()), 1, 0, 0),
            BZ_OK);
  return out.substr(0, size);
}

// Snappy's framing format by its description: a chunk of `type` that holds `bytes`.
inline std::string SnappyChunk(uint8_t type, const std::string& bytes) {
  return static_cast<char>(type) + LittleEndian(bytes.size(), 3) + bytes;
}
inline std::string SnappyChecksum(const std::string& data) {
  const uint32_t crc = SlowCrc32c(data);
  return LittleEndian(((crc >> 15) | (crc << 17)) + 0xa282ead8, 4);
}
inline std::string SnappyBlock(const std::string& data) {
  std::string out(snappy_max_compressed_length(data.size()), '\0');
  size_t size = out.size();
  EXPECT_EQ(snappy_compress(data.data(), data.size(), out.data(), &size), SNAPPY_OK);
  return out.substr(0, size);
}
// Every third chunk as it is.
inline std::string SnappyOf(const std::string& bytes) {
  std::string out = SnappyChunk(0xff, "sNaPpY");
  for (size_t at = 0, chunk = 0; at < bytes.size(); at += 65536, ++chunk) {
    const std::string data = bytes.substr(at, 65536);
    out += chunk % 3 == 2 ? SnappyChunk(1, SnappyChecksum(data) + data)
                          : SnappyChunk(0, SnappyChecksum(data) + SnappyBlock(data));
  }
  return out;
}

// A frame of zstd's and LZ4's that holds nothing.
inline std::string SkippableFrame(const std::string& user_data) {
  return "\x5a\x2a\x4d\x18" + LittleEndian(user_data.size(), 4) + user_data;
}

struct Writer {
  const char* name;  // of spec.source.files.compression
  std::string (*compress)(const std::string& bytes);
};
inline const Writer kWriters[] = {
    {"Gzip", GzipOf}, {"Zstd", ZstdOf}, {"Lz4", Lz4Of}, {"Bzip2", Bzip2Of}, {"Snappy", SnappyOf}};

}  // namespace headrace::side
