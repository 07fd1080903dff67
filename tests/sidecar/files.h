// Writes the data files that the loader's tests read.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace headrace::side {

// CRC-32C bit by bit, from its definition: shares nothing with the code under test.
inline uint32_t SlowCrc32c(const std::string& bytes) {
  uint32_t crc = 0xffffffff;
  for (const char c : bytes) {
    crc ^= static_cast<uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78 : 0);
  }
  return ~crc;
}

inline std::string LittleEndian(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

inline std::string TFRecordOf(const std::string& data) {
  const auto masked = [](const std::string& bytes) {
    const uint32_t crc = SlowCrc32c(bytes);
    return LittleEndian(((crc >> 15) | (crc << 17)) + 0xa282ead8, 4);
  };
  const std::string length = LittleEndian(data.size(), 8);
  return length + masked(length) + data + masked(data);
}

inline std::string GzipOf(const std::string& bytes) {
  z_stream stream{};
  deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, bytes.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// Protocol buffers, by hand.
inline std::string Varint(uint64_t value) {
  std::string text;
  for (; value >= 0x80; value >>= 7) text += static_cast<char>(value | 0x80);
  return text + static_cast<char>(value);
}
inline std::string Message(int field, const std::string& bytes) {
  return Varint(static_cast<uint64_t>(field) << 3 | 2) + Varint(bytes.size()) + bytes;
}
inline std::string Int64List(const std::vector<int64_t>& values) {
  std::string packed;
  for (const int64_t value : values) packed += Varint(static_cast<uint64_t>(value));
  return Message(3, Message(1, packed));
}
inline std::string FloatList(const std::vector<float>& values) {
  std::string packed(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  return Message(2, Message(1, packed));
}
inline std::string BytesList(const std::string& bytes) { return Message(1, Message(1, bytes)); }
inline std::string ExampleOf(const std::vector<std::pair<std::string, std::string>>& features) {
  std::string map;
  for (const auto& [name, feature] : features) map += Message(1, Message(1, name) + Message(2, feature));
  return Message(1, map);
}

// A folder of its own for one test, removed at its end.
class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "headrace-test-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::string& path() const { return path_; }
  std::string Write(const std::string& name, const std::string& bytes) const {
    const std::string path = path_ + "/" + name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

 private:
  std::string path_;
};

}  // namespace headrace::side
