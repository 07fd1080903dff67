// Loader and trainer as two processes, each killed at moments nobody chose, over and over: what the trainer wrote down
// as done is every batch, once, in order.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>

#include "tests/common/ring/ring_fixture.h"

namespace headrace::ring {
namespace {

// What the trainer has done, in memory that outlives it.
struct Ledger {
  std::atomic<uint64_t> next_step;
  std::atomic<uint64_t> repeated;  // delivered again after a kill, since it was not released
  std::atomic<uint32_t> problems;
  std::atomic<uint32_t> finish;  // asks the loader to end the epoch
};

class ProcessesTest : public RingTest {
 protected:
  ProcessesTest() {
    void* memory = mmap(nullptr, sizeof(Ledger), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ledger_ = new (memory) Ledger{};
  }
  ~ProcessesTest() override { munmap(ledger_, sizeof(Ledger)); }

  template <typename Body>
  static pid_t Fork(Body body) {
    pid_t child = fork();
    if (child != 0) return child;
    body();
    _exit(0);
  }

  // Publishes until it is asked to end the epoch; a restarted one goes on where the ring says.
  void Loader() {
    auto writer = OpenWriter(4);
    while (writer->next_epoch() == 0) {
      uint64_t step = writer->next_step();
      Status status = ledger_->finish.load() == 0 ? Write(*writer, 0, step) : WriteEnd(*writer, 0, step);
      if (!status.ok()) ledger_->problems.fetch_add(1);
    }
  }

  // Reads to the end of the epoch.
  void Trainer() {
    int fd = open(path().c_str(), O_RDWR);
    auto reader = RingReader::Attach(fd);
    close(fd);
    SlotView view;
    bool first = true;
    while (reader.ok()) {
      auto outcome = (*reader)->Next(0, 60000, &view);
      if (!outcome.ok() || *outcome == RingReader::Outcome::kTimeout) break;
      if (*outcome == RingReader::Outcome::kEndOfEpoch) return;
      const uint64_t expected = ledger_->next_step.load();
      // Only the first batch after a restart may be one that was done and not yet released.
      if (first && view.step + 1 == expected) {
        ledger_->repeated.fetch_add(1);
      } else if (view.step != expected || !Intact(view)) {
        break;
      } else {
        ledger_->next_step.store(expected + 1);
      }
      first = false;
      (*reader)->Release(view);
    }
    ledger_->problems.fetch_add(1);
  }

  Ledger* ledger_;
};

TEST_F(ProcessesTest, KillingEitherSideLosesAndRepeatsNothing) {
  OpenWriter(4);  // so that the first trainer finds a file
  pid_t loader = Fork([&] { Loader(); });
  pid_t trainer = Fork([&] { Trainer(); });
  std::mt19937 random(20240607);
  for (int round = 0; round < 200 && ledger_->problems.load() == 0; ++round) {
    // Some progress since the last kill, then a moment that falls anywhere in a step.
    const uint64_t goal = ledger_->next_step.load() + 1 + random() % 50;
    while (ledger_->next_step.load() < goal && ledger_->problems.load() == 0) sched_yield();
    for (uint32_t delay = random() % 2000; delay > 0; --delay) std::atomic_signal_fence(std::memory_order_seq_cst);
    const bool kill_loader = round % 2 == 0;
    pid_t& victim = kill_loader ? loader : trainer;
    kill(victim, SIGKILL);
    waitpid(victim, nullptr, 0);
    victim = Fork([&] { kill_loader ? Loader() : Trainer(); });
  }
  ledger_->finish.store(1);
  waitpid(trainer, nullptr, 0);
  waitpid(loader, nullptr, 0);
  EXPECT_EQ(ledger_->problems.load(), 0u);
  auto writer = OpenWriter(4);
  EXPECT_GT(writer->header().generation, 50u) << "most of the 100 loaders came as far as taking the ring over";
  EXPECT_EQ(writer->next_epoch(), 1u);
  EXPECT_EQ(writer->header().published.load(), ledger_->next_step.load() + 1) << "every batch and the epoch's end";
  EXPECT_EQ(writer->occupancy(), 0u);
}

TEST_F(ProcessesTest, SleepersAreWokenAcrossProcesses) {
  // Two slots and two sides that outrun each other: lost wake-ups would cost a sleep's slice each, 50 ms times
  // thousands.
  constexpr uint64_t kSteps = 20000;
  OpenWriter(2);
  pid_t loader = Fork([&] {
    auto writer = OpenWriter(2);
    for (uint64_t step = 0; step < kSteps; ++step) {
      if (!Write(*writer, 0, step).ok()) ledger_->problems.fetch_add(1);
    }
    if (!WriteEnd(*writer, 0, kSteps).ok()) ledger_->problems.fetch_add(1);
  });
  Trainer();
  waitpid(loader, nullptr, 0);
  EXPECT_EQ(ledger_->problems.load(), 0u);
  EXPECT_EQ(ledger_->next_step.load(), kSteps);
}

}  // namespace
}  // namespace headrace::ring
