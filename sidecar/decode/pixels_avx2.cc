// Pixels with AVX2 and F16C: eight values at a time are made floats, scaled, and written; where channels come first, 16
// pixels of three channels, or 8 that are floats already, are taken apart by shuffles. No fused multiply-add, which
// would round once where the maps round twice.
#include <cpuid.h>
#include <immintrin.h>

#include <cstring>

#include "sidecar/decode/pixels_quick.h"

namespace headrace::side {
namespace {

constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
constexpr size_t kLanes = 8;

template <DType Of>
constexpr size_t kValueBytes = Of == DType::kUint8     ? 1
                               : Of == DType::kFloat16 ? 2
                                                       : 4;

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

// Eight values as they are calculated with. Bytes are as they are in every type.
template <DType From, DType Within>
[[gnu::target("avx2,f16c"), gnu::always_inline]] inline __m256 LoadEight(const uint8_t* in) {
  if constexpr (From == DType::kUint8) return ToFloats(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(in)));
  return Round<Within>(_mm256_loadu_ps(reinterpret_cast<const float*>(in)));
}

// Values in the order in which they lie. Their channels repeat after 24 at the latest, of which three vectors are full.
constexpr size_t kPeriod = 24;
struct Pattern {
  float scale[PixelProgram::kMaxSteps][kPeriod];
  float offset[PixelProgram::kMaxSteps][kPeriod];
};

template <DType From, DType Within, DType Into>
[[gnu::target("avx2,f16c"), gnu::always_inline]] inline void OnePeriod(const PixelProgram& program,
                                                                       const Pattern& pattern, const uint8_t* in,
                                                                       uint8_t* out) {
  for (size_t lane = 0; lane < kPeriod; lane += kLanes) {
    __m256 values = LoadEight<From, Within>(in + lane * kValueBytes<From>);
    for (int k = 0; k < program.steps; ++k) {
      values =
          Step<Within>(values, _mm256_loadu_ps(&pattern.scale[k][lane]), _mm256_loadu_ps(&pattern.offset[k][lane]));
    }
    StoreEight<Into>(values, out + lane * kValueBytes<Into>);
  }
}

template <DType From, DType Within, DType Into>
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
    OnePeriod<From, Within, Into>(program, pattern, image + i * kValueBytes<From>, out + i * kValueBytes<Into>);
  }
  if (i == count) return;
  uint8_t rest[kPeriod * kValueBytes<From>] = {};
  uint8_t made[kPeriod * kValueBytes<Into>];
  std::memcpy(rest, image + i * kValueBytes<From>, (count - i) * kValueBytes<From>);
  OnePeriod<From, Within, Into>(program, pattern, rest, made);
  std::memcpy(out + i * kValueBytes<Into>, made, (count - i) * kValueBytes<Into>);
}

// Three channels that become planes.
constexpr size_t kChannels = 3;
constexpr size_t kPixels = 16;  // whose bytes fill a vector for each channel; of floats, kLanes do

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

// Channel c of eight pixels. Of the 24 floats, vector v has those in the lanes i with i % 3 == (c + v) % 3, so that no
// two are in the same lane: a channel is two blends, and then one permutation.
template <size_t Channel>
[[gnu::target("avx2"), gnu::always_inline]] inline __m256 Plane(const __m256 (&in)[kChannels]) {
  constexpr int kEveryThird[kChannels] = {0b01001001, 0b10010010, 0b00100100};  // from lane 0, 1, 2 on
  constexpr int kSecond = kEveryThird[(Channel + 1) % kChannels];
  constexpr int kThird = kEveryThird[(Channel + 2) % kChannels];
  const __m256 mixed = _mm256_blend_ps(_mm256_blend_ps(in[0], in[1], kSecond), in[2], kThird);
  // Pixel p's lane is (3 p + Channel) % 8.
  const __m256i order =
      _mm256_setr_epi32(Channel % 8, (Channel + 3) % 8, (Channel + 6) % 8, (Channel + 9) % 8, (Channel + 12) % 8,
                        (Channel + 15) % 8, (Channel + 18) % 8, (Channel + 21) % 8);
  return _mm256_permutevar8x32_ps(mixed, order);
}

template <DType Within, DType Into>
[[gnu::target("avx2,f16c"), gnu::always_inline]] inline void EightPixels(const PixelProgram& program, const uint8_t* in,
                                                                         uint8_t* out, size_t plane_bytes) {
  const auto* const from = reinterpret_cast<const float*>(in);
  const __m256 floats[kChannels] = {_mm256_loadu_ps(from), _mm256_loadu_ps(from + kLanes),
                                    _mm256_loadu_ps(from + 2 * kLanes)};
  __m256 planes[kChannels] = {Plane<0>(floats), Plane<1>(floats), Plane<2>(floats)};
  for (size_t c = 0; c < kChannels; ++c) {
    __m256 values = Round<Within>(planes[c]);
    for (int k = 0; k < program.steps; ++k) {
      values = Step<Within>(values, _mm256_set1_ps(program.scale[k][c]), _mm256_set1_ps(program.offset[k][c]));
    }
    StoreEight<Into>(values, out + c * plane_bytes);
  }
}

template <DType From, DType Within, DType Into>
[[gnu::target("avx2,f16c")]] void ToPlanes(const PixelProgram& program, const uint8_t* image, uint8_t* out) {
  constexpr size_t kStep = From == DType::kUint8 ? kPixels : kLanes;
  constexpr size_t kPixelBytes = kChannels * kValueBytes<From>;
  constexpr size_t kBytes = kValueBytes<Into>;
  constexpr auto kSome = From == DType::kUint8 ? SixteenPixels<Within, Into> : EightPixels<Within, Into>;
  const auto pixels = static_cast<size_t>(program.pixels);
  size_t p = 0;
  for (; p + kStep <= pixels; p += kStep) {
    kSome(program, image + p * kPixelBytes, out + p * kBytes, pixels * kBytes);
  }
  if (p == pixels) return;
  uint8_t rest[kStep * kPixelBytes] = {};
  uint8_t made[kStep * kChannels * kBytes];
  std::memcpy(rest, image + p * kPixelBytes, (pixels - p) * kPixelBytes);
  kSome(program, rest, made, kStep * kBytes);
  for (size_t c = 0; c < kChannels; ++c) {
    std::memcpy(out + (c * pixels + p) * kBytes, made + c * kStep * kBytes, (pixels - p) * kBytes);
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

template <DType From, DType Within, DType Into>
QuickPixels ForOrder(const PixelProgram& program) {
  // Of one channel, last is first.
  if (!program.channels_first || program.channels == 1) return InOrder<From, Within, Into>;
  return program.channels == static_cast<int64_t>(kChannels) ? ToPlanes<From, Within, Into> : nullptr;
}

template <DType From>
QuickPixels ForTypes(const PixelProgram& program) {
  if (program.within == DType::kFloat32 && program.result == DType::kFloat32) {
    return ForOrder<From, DType::kFloat32, DType::kFloat32>(program);
  }
  if (program.within == DType::kFloat32 && program.result == DType::kFloat16) {
    return ForOrder<From, DType::kFloat32, DType::kFloat16>(program);
  }
  if (program.within == DType::kFloat16 && program.result == DType::kFloat16) {
    return ForOrder<From, DType::kFloat16, DType::kFloat16>(program);
  }
  return nullptr;
}

}  // namespace

QuickPixels QuickPixelsFor(const PixelProgram& program, DType from) {
  if (__builtin_cpu_supports("avx2") == 0 || !HasF16c()) return nullptr;
  switch (from) {
    case DType::kUint8: return ForTypes<DType::kUint8>(program);
    case DType::kFloat32: return ForTypes<DType::kFloat32>(program);
    default: return nullptr;
  }
}

}  // namespace headrace::side
