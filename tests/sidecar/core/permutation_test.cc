#include "sidecar/core/permutation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace headrace::side {
namespace {

TEST(Permutation, VisitsEachNumberOnce) {
  for (uint64_t n = 1; n < 300; ++n) {
    for (const uint64_t key : {0, 1, 77}) {
      const Permutation permutation(n, key);
      std::vector<int> seen(n);
      for (uint64_t i = 0; i < n; ++i) {
        const uint64_t to = permutation(i);
        ASSERT_LT(to, n);
        ++seen[to];
      }
      EXPECT_EQ(seen, std::vector<int>(n, 1)) << n;
    }
  }
}

TEST(Permutation, OfNumbersBeyond32BitsStaysWithin) {
  const uint64_t n = (uint64_t{1} << 40) + 12345;
  const Permutation permutation(n, 5);
  for (uint64_t i = 0; i < 1000; ++i) EXPECT_LT(permutation(n - 1 - i), n);
}

// Where an element goes is as good as uniform: chi-squared over 16 buckets for each of 16 source stripes. With 255
// degrees of freedom, 350 is beyond the 99.99th percentile.
TEST(Permutation, SpreadsEveryStripeEvenly) {
  constexpr uint64_t kSize = 100000;
  const Permutation permutation(kSize, 42);
  std::vector<double> counts(256);
  for (uint64_t i = 0; i < kSize; ++i) ++counts[i * 16 / kSize * 16 + permutation(i) * 16 / kSize];
  double chi = 0;
  for (const double count : counts) chi += std::pow(count - kSize / 256.0, 2) / (kSize / 256.0);
  EXPECT_LT(chi, 350);
}

TEST(Permutation, DiffersByKey) {
  const Permutation one(1000, 1);
  const Permutation other(1000, 2);
  int same = 0;
  for (uint64_t i = 0; i < 1000; ++i) same += one(i) == other(i) ? 1 : 0;
  EXPECT_LT(same, 12) << "one is expected by chance";
}

}  // namespace
}  // namespace headrace::side
