// A shuffle of everything as arithmetic: a seeded bijection of [0, n), without memory.
#pragma once

#include <bit>
#include <cstdint>

#include "sidecar/core/random.h"

namespace headrace::side {

// A Feistel network over the least number of bits that holds n - 1, walked until it stays below n (Black and Rogaway,
// "Ciphers with Arbitrary Finite Domains", 2002): at most two rounds of the walk on average.
class Permutation {
 public:
  Permutation() = default;
  Permutation(uint64_t n, uint64_t key) : n_(n) {
    const int bits = n > 1 ? std::bit_width(n - 1) : 1;
    right_bits_ = (bits + 1) / 2;
    left_bits_ = bits - right_bits_;
    for (uint64_t round = 0; round < kRounds; ++round) keys_[round] = Mix(key, round);
  }

  // REQUIRES: i < n.
  uint64_t operator()(uint64_t i) const {
    do i = Encrypt(i);
    while (i >= n_);
    return i;
  }

 private:
  static constexpr uint64_t kRounds = 4;

  uint64_t Encrypt(uint64_t value) const {
    // The halves keep their widths: odd rounds change the left one, even ones the right.
    uint64_t left = value >> right_bits_;
    uint64_t right = value & Ones(right_bits_);
    for (uint64_t round = 0; round < kRounds; round += 2) {
      left ^= Mix(right + keys_[round]) & Ones(left_bits_);
      right ^= Mix(left + keys_[round + 1]) & Ones(right_bits_);
    }
    return left << right_bits_ | right;
  }
  static uint64_t Ones(int bits) { return (uint64_t{1} << bits) - 1; }

  uint64_t n_ = 1;
  int left_bits_ = 0;
  int right_bits_ = 1;
  uint64_t keys_[kRounds] = {};
};

}  // namespace headrace::side
