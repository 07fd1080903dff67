// TFRecord: uint64 length | uint32 masked_crc32c(length) | data | uint32 masked_crc32c(data), little-endian.
// tf.train.Example: Example{1: Features{1: map entry{1: key, 2: Feature{3: Int64List{1: packed varints}}}}}.
#include "cli/tfrecord_writer.h"

#include <array>
#include <cerrno>
#include <fstream>

namespace headrace::cli {
namespace {

constexpr std::array<uint32_t, 256> MakeTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0x82F63B78u : 0u);
    table[i] = value;
  }
  return table;
}

constexpr std::array<uint32_t, 256> kTable = MakeTable();

uint32_t MaskedCrc32c(const std::string& data) {
  uint32_t crc = 0xFFFFFFFFu;
  for (const char byte : data) crc = kTable[(crc ^ static_cast<uint8_t>(byte)) & 0xFF] ^ (crc >> 8);
  crc ^= 0xFFFFFFFFu;
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
}

std::string LittleEndian(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text.push_back(static_cast<char>(value >> (8 * i)));
  return text;
}

std::string Varint(uint64_t value) {
  std::string text;
  for (; value >= 0x80; value >>= 7) text.push_back(static_cast<char>(value | 0x80));
  text.push_back(static_cast<char>(value));
  return text;
}

std::string Field(int number, const std::string& data) {
  return Varint(static_cast<uint64_t>(number) << 3 | 2) + Varint(data.size()) + data;
}

std::string Example(int64_t value) {
  const std::string list = Field(1, Varint(static_cast<uint64_t>(value)));
  return Field(1, Field(1, Field(1, "x") + Field(2, Field(3, list))));
}

}  // namespace

std::string FrameRecord(const std::string& data) {
  const std::string length = LittleEndian(data.size(), 8);
  return length + LittleEndian(MaskedCrc32c(length), 4) + data + LittleEndian(MaskedCrc32c(data), 4);
}

Status WriteExamples(const std::string& path, const std::vector<int64_t>& values) {
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  for (int64_t value : values) file << FrameRecord(Example(value));
  file.close();
  return file ? Status() : ErrnoStatus(errno != 0 ? errno : EIO, "writing " + path);
}

}  // namespace headrace::cli
