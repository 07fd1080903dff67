// Copies that leave the caches alone, for rows whose reader is another process, later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace headrace::side {

// As memcpy; what is at `to` is not read into the cache first, and is not there afterwards. Others see the bytes in
// their place only after EndStreaming of the same thread. REQUIRES: `to` is a multiple of 16, and so is `bytes`. Quick
// if calls in a row make whole lines of 64 bytes.
inline void StreamBytes(uint8_t* to, const uint8_t* from, size_t bytes) {
#if defined(__SSE2__)
  for (size_t at = 0; at < bytes; at += sizeof(__m128i)) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + at), _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at)));
  }
#else
  std::memcpy(to, from, bytes);
#endif
}

// Orders what was streamed before what the thread writes next: stores that tell another thread of it, for example.
inline void EndStreaming() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

}  // namespace headrace::side
