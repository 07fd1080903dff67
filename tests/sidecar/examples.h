// TFRecords and tf.train.Examples, made by hand; needs no library.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
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

}  // namespace headrace::side
