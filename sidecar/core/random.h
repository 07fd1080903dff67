// Random numbers as arithmetic: a function of a key and a counter, the same on every machine.
#pragma once

#include <cstdint>

namespace headrace::side {

// SplitMix64's output function (Steele, Lea, Flood, 2014).
inline uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

inline uint64_t Mix(uint64_t a, uint64_t b) { return Mix(Mix(a) ^ b); }

class Random {
 public:
  explicit Random(uint64_t key) : key_(key) {}
  // Uniform over [0, bound). REQUIRES: bound > 0. The bias of multiply-shift is below 2^-32 for bounds up to 2^32.
  uint64_t Below(uint64_t bound) {
    const uint64_t value = Mix(key_ + counter_++);
    return static_cast<uint64_t>((static_cast<unsigned __int128>(value) * bound) >> 64);
  }

 private:
  uint64_t key_;
  uint64_t counter_ = 0;
};

}  // namespace headrace::side
