#include "sidecar/source/arrow_parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace headrace::side {
namespace {

TEST(InParallel, CallsWithEachNumberOnce) {
  for (const size_t count : {0, 1, 2, 7, 1000}) {
    std::vector<std::atomic<int>> calls(count);
    const arrow::Status status = InParallel(count, [&](size_t i) {
      ++calls[i];
      return arrow::Status::OK();
    });
    EXPECT_TRUE(status.ok()) << status.ToString();
    for (size_t i = 0; i < count; ++i) EXPECT_EQ(calls[i], 1) << i;
  }
}

// What the calls refer to is gone as soon as it has returned, and threads that come too late do not look at it.
TEST(InParallel, HasEndedWhenItReturns) {
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([] {
      for (int round = 0; round < 2000; ++round) {
        auto sum = std::make_unique<std::atomic<size_t>>(0);
        const arrow::Status status = InParallel(5, [&sum](size_t i) {
          *sum += i;
          return arrow::Status::OK();
        });
        ASSERT_TRUE(status.ok()) << status.ToString();
        ASSERT_EQ(*sum, 10u);
        sum.reset();
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

TEST(InParallel, ReturnsAnError) {
  std::atomic<int> calls{0};
  const arrow::Status status = InParallel(20, [&](size_t i) {
    ++calls;
    return i == 13 ? arrow::Status::Invalid("the fourteenth") : arrow::Status::OK();
  });
  EXPECT_EQ(status.message(), "the fourteenth");
  EXPECT_EQ(calls, 20) << "the others are not left out";
}

}  // namespace
}  // namespace headrace::side
