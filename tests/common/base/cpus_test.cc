#include "common/base/cpus.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace headrace {
namespace {

TEST(UsableCpus, AreNoMoreThanTheAffinity) {
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  EXPECT_GE(UsableCpus(), 1u);
  EXPECT_LE(UsableCpus(), static_cast<size_t>(CPU_COUNT(&all)));
  std::thread([&] {
    int first = 0;
    while (!CPU_ISSET(first, &all)) ++first;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(UsableCpus(), 1u);
  }).join();
}

}  // namespace
}  // namespace headrace
