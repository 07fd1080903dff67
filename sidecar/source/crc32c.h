// CRC-32C (Castagnoli). By isa-l the fastest variant this processor has, chosen at run time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headrace::side {

uint32_t Crc32c(const uint8_t* data, size_t bytes);
// As TFRecord and snappy store it, so that a checksum of data that hold checksums is still one.
inline uint32_t MaskedCrc32c(const uint8_t* data, size_t bytes) {
  const uint32_t crc = Crc32c(data, bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8;
}

}  // namespace headrace::side
