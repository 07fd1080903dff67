// Pixels with AVX2 and F16C: eight values at a time are made floats, scaled, and written; where channels come first, 16
// pixels of three channels are taken apart by shuffles. No fused multiply-add, which would round once where the maps
// round twice.
#include <cpuid.h>
#include <immintrin.h>

#include <cstring>

#include "sidecar/decode/pixels_quick.h"

namespace headrace::side {
namespace {

constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
constexpr size_t kLanes = 8;

// Eight values as they are written.
template <DType Into>
[[gnu::target("avx2,f16c"), gnu::always_inline]] inline void StoreEight(__m256 values, uint8_t* out) {
  if constexpr (Into == DType::kFloat16) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm256_cvtps_ph(values, kNearest));
  } else {
    _mm256_storeu_ps(reinterpret_cast<float*>(out), values);
  }
}

template <DType Within>
[[gnu::target("avx2,f16c"), gnu::always_inline]] inline __m256 Round(__m256 values) {
  if constexpr (Within == DType::kFloat16) return _mm256_cvtph_ps(_mm256_cvtps_ph(values, kNearest));
  return values;
}

[[gnu::target("avx2,f16c"), gnu::always_inline]] inline __m256 ToFloats(__m128i low_bytes) {
  return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(low_bytes));
}

template <DType Within>
[[gnu::target("avx2,f16c"), gnu::always_inline]] inline __m256 Step(__m256 values, __m256 scale, __m256 offset) {
  return Round<Within>(_mm256_add_ps(Round<Within>(_mm256_mul_ps(values, scale)), offset));
}

template <DType Into>
constexpr size_t kValueBytes = Into == DType::kFloat16 ? 2 : 4;

// Values in the order in which they lie. Their channels repeat after 24 at the latest, of which three vectors are full.
constexpr size_t kPeriod = 24;
struct Pattern {
  float scale[PixelProgram::kMaxSteps][kPeriod];
  float offset[PixelProgram::kMaxSteps][kPeriod];
};

template <DType Within, DType Into>
[[gnu::target("avx2,f16c"), gnu::always_inline]] inline void OnePeriod(const PixelProgram& program,
                                                                       const Pattern& pattern, const uint8_t* in,
                                                                       uint8_t* out) {
  for (size_t lane = 0; lane < kPeriod; lane += kLanes) {
    __m256 values = ToFloats(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(in + lane)));
    for (int k = 0; k < program.steps; ++k) {
      values =
          Step<Within>(values, _mm256_loadu_ps(&pattern.scale[k][lane]), _mm256_loadu_ps(&pattern.offset[k][lane]));
    }
    StoreEight<Into>(values, out + lane * kValueBytes<Into>);
  }
}

template <DType Within, DType Into>
[[gnu::target("avx2,f16c")]] void InOrder(const PixelProgram& program, const uint8_t* image, uint8_t* out) {
  Pattern pattern;
  for (int k = 0; k < program.steps; ++k) {
    for (size_t i = 0; i < kPeriod; ++i) {
      const size_t channel = i % static_cast<size_t>(program.channels) % PixelProgram::kMaxChannels;
      pattern.scale[k][i] = program.scale[k][channel];
      pattern.offset[k][i] = program.offset[k][channel];
    }
  }
  const auto count = static_cast<size_t>(program.pixels * program.channels);
  size_t i = 0;
  for (; i + kPeriod <= count; i += kPeriod) {
    OnePeriod<Within, Into>(program, pattern, image + i, out + i * kValueBytes<Into>);
  }
  if (i == count) return;
  uint8_t rest[kPeriod] = {};
  uint8_t made[kPeriod * kValueBytes<Into>];
  std::memcpy(rest, image + i, count - i);
  OnePeriod<Within, Into>(program, pattern, rest, made);
  std::memcpy(out + i * kValueBytes<Into>, made, (count - i) * kValueBytes<Into>);
}

// Three channels that become planes.
constexpr size_t kChannels = 3;
constexpr size_t kPixels = 16;  // whose bytes fill a vector for each channel

// For pshufb: [channel][v] brings the bytes of `channel` that vector v of 48 bytes holds to their places.
struct PlaneTable {
  alignas(16) uint8_t control[kChannels][kChannels][kPixels];

  constexpr PlaneTable() : control() {
    for (size_t c = 0; c < kChannels; ++c) {
      for (size_t v = 0; v < kChannels; ++v) {
        for (size_t p = 0; p < kPixels; ++p) {
          const size_t byte = p * kChannels + c;
          control[c][v][p] = static_cast<uint8_t>(byte / kPixels == v ? byte % kPixels : 0x80);
        }
      }
    }
  }
};
constexpr PlaneTable kPlanes;

template <DType Within, DType Into>
[[gnu::target("avx2,f16c"), gnu::always_inline]] inline void SixteenPixels(const PixelProgram& program,
                                                                           const uint8_t* in, uint8_t* out,
                                                                           size_t plane_bytes) {
  const auto* const from = reinterpret_cast<const __m128i*>(in);
  const __m128i bytes[kChannels] = {_mm_loadu_si128(from), _mm_loadu_si128(from + 1), _mm_loadu_si128(from + 2)};
  for (size_t c = 0; c < kChannels; ++c) {
    __m128i plane = _mm_setzero_si128();
    for (size_t v = 0; v < kChannels; ++v) {
      const __m128i control = _mm_load_si128(reinterpret_cast<const __m128i*>(kPlanes.control[c][v]));
      plane = _mm_or_si128(plane, _mm_shuffle_epi8(bytes[v], control));
    }
    __m256 low = ToFloats(plane);
    __m256 high = ToFloats(_mm_srli_si128(plane, kLanes));
    for (int k = 0; k < program.steps; ++k) {
      const __m256 scale = _mm256_set1_ps(program.scale[k][c]);
      const __m256 offset = _mm256_set1_ps(program.offset[k][c]);
      low = Step<Within>(low, scale, offset);
      high = Step<Within>(high, scale, offset);
    }
    StoreEight<Into>(low, out + c * plane_bytes);
    StoreEight<Into>(high, out + c * plane_bytes + kLanes * kValueBytes<Into>);
  }
}

template <DType Within, DType Into>
[[gnu::target("avx2,f16c")]] void ToPlanes(const PixelProgram& program, const uint8_t* image, uint8_t* out) {
  constexpr size_t kBytes = kValueBytes<Into>;
  const auto pixels = static_cast<size_t>(program.pixels);
  size_t p = 0;
  for (; p + kPixels <= pixels; p += kPixels) {
    SixteenPixels<Within, Into>(program, image + p * kChannels, out + p * kBytes, pixels * kBytes);
  }
  if (p == pixels) return;
  uint8_t rest[kPixels * kChannels] = {};
  uint8_t made[kPixels * kChannels * kBytes];
  std::memcpy(rest, image + p * kChannels, (pixels - p) * kChannels);
  SixteenPixels<Within, Into>(program, rest, made, kPixels * kBytes);
  for (size_t c = 0; c < kChannels; ++c) {
    std::memcpy(out + (c * pixels + p) * kBytes, made + c * kPixels * kBytes, (pixels - p) * kBytes);
  }
}

// clang has no name of it for __builtin_cpu_supports.
bool HasF16c() {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

template <DType Within, DType Into>
QuickPixels ForOrder(const PixelProgram& program) {
  // Of one channel, last is first.
  if (!program.channels_first || program.channels == 1) return InOrder<Within, Into>;
  return program.channels == static_cast<int64_t>(kChannels) ? ToPlanes<Within, Into> : nullptr;
}

}  // namespace

QuickPixels QuickPixelsFor(const PixelProgram& program) {
  if (__builtin_cpu_supports("avx2") == 0 || !HasF16c()) return nullptr;
  if (program.within == DType::kFloat32 && program.result == DType::kFloat32) {
    return ForOrder<DType::kFloat32, DType::kFloat32>(program);
  }
  if (program.within == DType::kFloat32 && program.result == DType::kFloat16) {
    return ForOrder<DType::kFloat32, DType::kFloat16>(program);
  }
  if (program.within == DType::kFloat16 && program.result == DType::kFloat16) {
    return ForOrder<DType::kFloat16, DType::kFloat16>(program);
  }
  return nullptr;
}

}  // namespace headrace::side
