#include "sidecar/decode/bilinear.h"

namespace headrace::side {
namespace {

void Columns(const uint8_t* in, std::span<const Between> columns, int64_t channels, float* out) {
  for (const Between& x : columns) {
    for (int64_t c = 0; c < channels; ++c) {
      const auto lower = static_cast<float>(in[x.lower + c]);
      *out++ = lower + (static_cast<float>(in[x.upper + c]) - lower) * x.part;
    }
  }
}

void Rows(const float* top, const float* bottom, float part, size_t values, float* out) {
  for (size_t i = 0; i < values; ++i) out[i] = top[i] + (bottom[i] - top[i]) * part;
}

}  // namespace

Bilinear PlainBilinear() { return {Columns, Rows}; }

}  // namespace headrace::side
