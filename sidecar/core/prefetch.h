// What is read soon, after a shuffle, lies anywhere: it is asked for before it is needed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace headrace::side {

// How many records are between asking for one and reading it.
inline constexpr size_t kPrefetchAhead = 8;

// Starts to bring bytes into the caller's cache; of many the first, as the processor's own prefetching takes over from
// there. Inlined, as GCC drops calls of functions that do nothing else.
[[gnu::always_inline]] inline void PrefetchBytes(const uint8_t* data, size_t bytes) {
  constexpr size_t kLine = 64;
  constexpr size_t kMostBytes = 2 << 10;
  for (size_t at = 0; at < std::min(bytes, kMostBytes); at += kLine) __builtin_prefetch(data + at);
}

}  // namespace headrace::side
