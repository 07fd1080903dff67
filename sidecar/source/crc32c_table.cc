// CRC-32C a byte at a time, for where isa-l is not (crc32c.cc is the counterpart).
#include <array>

#include "sidecar/source/crc32c.h"

namespace headrace::side {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // Castagnoli's, reflected

constexpr std::array<uint32_t, 256> MakeTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < table.size(); ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? kPolynomial : 0);
    table[byte] = crc;
  }
  return table;
}

}  // namespace

uint32_t Crc32c(const uint8_t* data, size_t bytes) {
  static constexpr std::array<uint32_t, 256> kTable = MakeTable();
  uint32_t crc = 0xffffffff;
  for (size_t i = 0; i < bytes; ++i) crc = crc >> 8 ^ kTable[(crc ^ data[i]) & 0xff];
  return ~crc;
}

}  // namespace headrace::side
