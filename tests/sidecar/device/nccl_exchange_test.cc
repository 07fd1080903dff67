// The exchange over NCCL, against stand-ins for libnccl and for the driver.
#include "sidecar/device/nccl_exchange.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <cstring>

#include "common/gpu/driver.h"
#include "tests/sidecar/device/ranks.h"

namespace headrace::device {
namespace {

using side::Exchange;
using ::testing::HasSubstr;

constexpr int64_t kLongMs = 60000;

// What byte `i` of a message is: differs between messages and between places.
uint8_t ByteOf(size_t message, size_t i) { return static_cast<uint8_t>(message * 31 + i * 7 + i / 251); }

Exchange::Part Allocate(Rank& rank, size_t bytes) {
  const Result<uint8_t*> memory = rank.exchange->Allocate(bytes);
  EXPECT_TRUE(memory.ok()) << memory.status().ToString();
  return {*memory, bytes};
}

bool Holds(const Exchange::Part& part, size_t message) {
  for (size_t i = 0; i < part.bytes; ++i) {
    if (part.data[i] != ByteOf(message, i)) return false;
  }
  return true;
}

void Fill(const Exchange::Part& part, size_t message) {
  for (size_t i = 0; i < part.bytes; ++i) part.data[i] = ByteOf(message, i);
}

// Sets a variable for as long as it lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

TEST(NcclExchange, WhatWorkerZeroHasAllGet) {
  const auto outcomes = RunRanks(3, kLongMs, [](Rank& rank) -> Status {
    const Exchange::Part memory = Allocate(rank, 300000);
    for (size_t message = 0; message < 20; ++message) {
      const Exchange::Part part{memory.data, 1 + message * 15000};  // also more than the stand-in takes at once
      std::memset(part.data, 0xee, part.bytes);
      if (rank.number == 0) Fill(part, message);
      RETURN_IF_ERROR(rank.exchange->Broadcast(part, kNever));
      EXPECT_TRUE(Holds(part, message)) << "rank " << rank.number << ", message " << message;
    }
    return {};
  });
  for (const Status& outcome : outcomes) EXPECT_TRUE(outcome.ok()) << outcome.ToString();
}

TEST(NcclExchange, EachWorkerGetsItsPart) {
  constexpr size_t kRanks = 4;
  const auto bytes_of = [](size_t message, size_t rank) { return 100 + message * 7000 + rank * 1234; };
  const auto outcomes = RunRanks(kRanks, kLongMs, [&](Rank& rank) -> Status {
    const Exchange::Part memory = Allocate(rank, kRanks * 100000);
    for (size_t message = 0; message < 10; ++message) {
      if (rank.number == 0) {
        std::vector<Exchange::Part> parts;
        for (size_t other = 0; other < kRanks; ++other) {
          parts.push_back({memory.data + other * 100000, bytes_of(message, other)});
          Fill(parts.back(), message * kRanks + other);
        }
        RETURN_IF_ERROR(rank.exchange->Scatter(parts, kNever));
        continue;
      }
      const auto own = static_cast<size_t>(rank.number);
      const Exchange::Part part{memory.data, bytes_of(message, own)};
      RETURN_IF_ERROR(rank.exchange->Receive(part, kNever));
      EXPECT_TRUE(Holds(part, message * kRanks + own)) << "rank " << own << ", message " << message;
    }
    return {};
  });
  for (const Status& outcome : outcomes) EXPECT_TRUE(outcome.ok()) << outcome.ToString();
}

TEST(NcclExchange, WhoWaitsForOneThatIsGoneGivesUpInTime) {
  const auto outcomes = RunRanks(2, 200, [](Rank& rank) -> Status {
    const Exchange::Part part = Allocate(rank, 1000);
    if (rank.number == 0) return {};  // is gone
    const Status timed_out = rank.exchange->Broadcast(part, kNever);
    EXPECT_EQ(timed_out.code(), Code::kUnavailable);
    EXPECT_THAT(timed_out.message(), HasSubstr("ncclBroadcast did not end within 200 ms"));
    return rank.exchange->Broadcast(part, kNever);
  });
  EXPECT_TRUE(outcomes[0].ok()) << outcomes[0].ToString();
  EXPECT_THAT(outcomes[1].message(), HasSubstr("the exchange has ended")) << "the communicator was aborted";
}

TEST(NcclExchange, WhoIsToldToGivesUp) {
  std::atomic<bool> over{false};
  std::atomic<int> asked{0};
  const auto outcomes = RunRanks(2, kLongMs, [&](Rank& rank) -> Status {
    if (rank.number == 1) {
      while (asked == 0) std::this_thread::yield();  // rank 0 waits
      over = true;
      return {};
    }
    // More than fits on the way.
    const Exchange::Part large = Allocate(rank, 1 << 20);
    return rank.exchange->Broadcast(large, [&] {
      ++asked;
      return over.load();
    });
  });
  EXPECT_EQ(outcomes[0].code(), Code::kCancelled) << outcomes[0].ToString();
}

TEST(NcclExchange, WhoNeverJoinsIsNotWaitedForForEver) {
  auto alone = OpenNcclExchange({2, 0, 200});
  ASSERT_TRUE(alone.ok()) << alone.status().ToString();
  const Result<std::string> id = (*alone)->NewId();
  ASSERT_TRUE(id.ok());
  EXPECT_THAT((*alone)->Join(*id, kNever).message(), HasSubstr("ncclCommInitRankConfig did not end within 200 ms"));
}

TEST(NcclExchange, ItsErrorsAreTold) {
  const Variable fail("FAKE_NCCL_FAIL_AT", "3");
  const auto outcomes = RunRanks(2, 1000, [](Rank& rank) -> Status {
    const Exchange::Part part = Allocate(rank, 1000);
    for (int i = 0; i < 3; ++i) RETURN_IF_ERROR(rank.exchange->Broadcast(part, kNever));
    return {};
  });
  const auto tells = [](const Status& outcome) { return outcome.message().find("(6)") != std::string::npos; };
  // One of the two makes the third call.
  EXPECT_TRUE(tells(outcomes[0]) || tells(outcomes[1])) << outcomes[0].ToString() << ", " << outcomes[1].ToString();
  EXPECT_FALSE(outcomes[0].ok() && outcomes[1].ok());
}

TEST(NcclExchange, TwoWorkersOfOneGpuAreRefused) {
  const Variable shared("FAKE_NCCL_GPU", "0000:18:00.0");
  const auto nothing = [](Rank&) { return Status(); };
  for (const Status& outcome : RunRanks(2, kLongMs, nothing))
    EXPECT_THAT(outcome.message(), HasSubstr("invalid usage"));
  const Variable allowed("NCCL_MULTI_RANK_GPU_ENABLE", "1");
  for (const Status& outcome : RunRanks(2, kLongMs, nothing)) EXPECT_TRUE(outcome.ok()) << outcome.ToString();
}

TEST(NcclExchange, MemoryOfOthersIsRefused) {
  const auto outcomes = RunRanks(2, 500, [](Rank& rank) -> Status {
    std::vector<uint8_t> pageable(1000);
    return rank.exchange->Broadcast({pageable.data(), pageable.size()}, kNever);
  });
  for (const Status& outcome : outcomes) EXPECT_THAT(outcome.message(), HasSubstr("invalid argument"));
}

TEST(NcclExchange, WithoutAGpuItSaysSo) {
  // A process of its own: in this one the driver stays open.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv("HEADRACE_LIBCUDA", "/nowhere/libcuda.so.1", 1);
        const auto opened = OpenNcclExchange({2, 0, 100});
        const bool told = opened.status().message().find("no CUDA driver in this process") != std::string::npos;
        _exit(told ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace headrace::device
