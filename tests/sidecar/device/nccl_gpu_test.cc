// The exchange over the real NCCL, on a real GPU: two loaders, each a process of its own. On a machine with one GPU
// both take it, which NCCL allows by NCCL_MULTI_RANK_GPU_ENABLE=1. Elsewhere each test says that it was skipped, and
// why.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "common/gpu/driver.h"
#include "sidecar/device/nccl.h"

namespace headrace::device {
namespace {

constexpr size_t kBytes = 16 << 20;
constexpr size_t kIdBytes = 128;
constexpr int kTwoRanksOnOneGpu = 23000;
const auto kNever = [] { return false; };

uint8_t ByteOf(size_t message, size_t i) { return static_cast<uint8_t>(message * 31 + i * 7 + i / 251); }

// A process forked from one that uses CUDA cannot use it, so this one never does.
pid_t Fork(const std::function<bool()>& body) {
  const pid_t pid = fork();
  if (pid == 0) _exit(body() ? 0 : 1);
  return pid;
}

int StatusOf(pid_t pid) {
  int status = -1;
  waitpid(pid, &status, 0);
  return status;
}

bool Ok(const Status& status) {
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok();
}

class NcclGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto has_gpu = [] { return Ok(gpu::CountGpus().status()); };
    if (StatusOf(Fork(has_gpu)) != 0) GTEST_SKIP() << "no GPU here: see the line above";
    const auto takes_two_ranks = [] {
      const Result<int> nccl = NcclVersion();
      if (!Ok(nccl.status())) return false;
      const Result<int> gpus = gpu::CountGpus();
      if (*nccl >= kTwoRanksOnOneGpu || (gpus.ok() && *gpus > 1)) return true;
      std::fprintf(stderr, "NCCL %s takes one rank a GPU, %s and newer two: set NCCL_ROOT to one of those\n",
                   NcclVersionText(*nccl).c_str(), NcclVersionText(kTwoRanksOnOneGpu).c_str());
      return false;
    };
    ASSERT_EQ(StatusOf(Fork(takes_two_ranks)), 0) << "see the line above";
    setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);
    ASSERT_EQ(pipe(id_), 0);
  }

  // Rank 0 or 1, joined, with its memory.
  pid_t StartRank(int64_t rank, int64_t timeout_ms, const std::function<bool(side::Exchange&, uint8_t*)>& body) {
    return Fork([&, rank] {
      auto opened = OpenNcclExchange({2, rank, timeout_ms});
      if (!Ok(opened.status())) return false;
      side::Exchange& exchange = **opened;
      char id[kIdBytes];
      if (rank == 0) {
        const Result<std::string> made = exchange.NewId();
        if (!Ok(made.status()) || write(id_[1], made->data(), kIdBytes) != static_cast<ssize_t>(kIdBytes)) return false;
        std::memcpy(id, made->data(), kIdBytes);
      } else if (read(id_[0], id, kIdBytes) != static_cast<ssize_t>(kIdBytes)) {
        return false;
      }
      if (!Ok(exchange.Join(std::string(id, kIdBytes), kNever))) return false;
      const Result<uint8_t*> memory = exchange.Allocate(2 * kBytes);
      return Ok(memory.status()) && body(exchange, *memory);
    });
  }

  int id_[2] = {-1, -1};
};

TEST_F(NcclGpu, MovesWhatItIsGiven) {
  const auto body = [](int64_t rank) {
    return [rank](side::Exchange& exchange, uint8_t* memory) {
      for (size_t message = 0; message < 20; ++message) {
        const bool scatters = message % 2 == 1;
        const size_t bytes = kBytes / (message + 1) + message;  // also odd sizes
        uint8_t* const sent = scatters && rank == 0 ? memory + kBytes : memory;
        for (size_t i = 0; i < bytes; ++i) sent[i] = rank == 0 ? ByteOf(message, i) : uint8_t{0xee};
        const Status moved =
            !scatters   ? exchange.Broadcast({memory, bytes}, kNever)
            : rank == 0 ? exchange.Scatter(std::vector<side::Exchange::Part>{{memory, 1}, {sent, bytes}}, kNever)
                        : exchange.Receive({memory, bytes}, kNever);
        if (!Ok(moved)) return false;
        for (size_t i = 0; i < bytes; ++i) {
          if (sent[i] == ByteOf(message, i)) continue;
          std::fprintf(stderr, "rank %d, message %zu: byte %zu differs\n", static_cast<int>(rank), message, i);
          return false;
        }
      }
      return true;
    };
  };
  const pid_t zero = StartRank(0, 60000, body(0));
  const pid_t one = StartRank(1, 60000, body(1));
  EXPECT_EQ(StatusOf(zero), 0);
  EXPECT_EQ(StatusOf(one), 0);
}

TEST_F(NcclGpu, WhoWaitsForOneThatWasKilledGivesUp) {
  const pid_t zero = StartRank(0, 5000, [](side::Exchange& exchange, uint8_t* memory) {
    if (!Ok(exchange.Broadcast({memory, kBytes}, kNever))) return false;
    while (true) {
      const Status moved = exchange.Broadcast({memory, kBytes}, kNever);
      if (moved.ok()) continue;
      std::fprintf(stderr, "as it should: %s\n", moved.ToString().c_str());
      return moved.code() == Code::kUnavailable;
    }
  });
  const pid_t one = StartRank(1, 60000, [](side::Exchange& exchange, uint8_t* memory) {
    for (int i = 0; i < 10; ++i) {
      if (!Ok(exchange.Broadcast({memory, kBytes}, kNever))) return false;
    }
    kill(getpid(), SIGKILL);
    return false;
  });
  EXPECT_EQ(WTERMSIG(StatusOf(one)), SIGKILL);
  EXPECT_EQ(StatusOf(zero), 0);
}

}  // namespace
}  // namespace headrace::device
