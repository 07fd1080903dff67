// With AVX2: four channels of a pixel at a time, what it has fewer of being written over by the next, and eight values
// of a row. No fused multiply-add, which would round once where TensorFlow rounds twice.
#include <immintrin.h>

#include <cstring>

#include "sidecar/decode/bilinear.h"

namespace headrace::side {
namespace {

constexpr size_t kLanes = 8;

[[gnu::target("avx2"), gnu::always_inline]] inline __m128 LoadFour(const uint8_t* in) {
  int32_t bytes = 0;
  std::memcpy(&bytes, in, sizeof bytes);
  return _mm_cvtepi32_ps(_mm_cvtepu8_epi32(_mm_cvtsi32_si128(bytes)));
}

// Inlined for each number of channels, so that it is known.
[[gnu::target("avx2"), gnu::always_inline]] inline void Columns(const uint8_t* in, std::span<const Between> columns,
                                                                size_t channels, float* out) {
  for (const Between& x : columns) {
    const __m128 lower = LoadFour(in + x.lower);
    const __m128 upper = LoadFour(in + x.upper);
    _mm_storeu_ps(out, _mm_add_ps(lower, _mm_mul_ps(_mm_sub_ps(upper, lower), _mm_set1_ps(x.part))));
    out += channels;
  }
}

[[gnu::target("avx2")]] void QuickColumns(const uint8_t* in, std::span<const Between> columns, int64_t channels,
                                          float* out) {
  switch (channels) {
    case 1: Columns(in, columns, 1, out); break;
    case 3: Columns(in, columns, 3, out); break;
    default: Columns(in, columns, 4, out); break;
  }
}

[[gnu::target("avx2")]] void QuickRows(const float* top, const float* bottom, float part, size_t values, float* out) {
  const __m256 parts = _mm256_set1_ps(part);
  size_t i = 0;
  for (; i + kLanes <= values; i += kLanes) {
    const __m256 upper = _mm256_loadu_ps(top + i);
    const __m256 difference = _mm256_sub_ps(_mm256_loadu_ps(bottom + i), upper);
    _mm256_storeu_ps(out + i, _mm256_add_ps(upper, _mm256_mul_ps(difference, parts)));
  }
  for (; i < values; ++i) out[i] = top[i] + (bottom[i] - top[i]) * part;
}

}  // namespace

Bilinear BilinearFor() {
  return __builtin_cpu_supports("avx2") != 0 ? Bilinear{QuickColumns, QuickRows} : PlainBilinear();
}

}  // namespace headrace::side
