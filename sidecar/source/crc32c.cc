// By isa-l; crc32c_table.cc is the counterpart.
#include "sidecar/source/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>

namespace headrace::side {

uint32_t Crc32c(const uint8_t* data, size_t bytes) {
  constexpr size_t kMaxStep = size_t{1} << 30;  // isa-l takes the length as int
  uint32_t crc = 0xffffffff;
  while (bytes > 0) {
    const size_t step = std::min(bytes, kMaxStep);
    // isa-l takes a non-const pointer and does not write through it.
    crc = crc32_iscsi(const_cast<unsigned char*>(data), static_cast<int>(step), crc);
    data += step;
    bytes -= step;
  }
  return ~crc;
}

}  // namespace headrace::side
