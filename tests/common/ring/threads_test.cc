// A writer and a reader thread over one mapping, with releases from a third thread: what ThreadSanitizer checks. (Two
// mappings of one file have different addresses, between which it sees neither races nor their absence.)
#include <condition_variable>
#include <deque>
#include <mutex>
#include <random>
#include <thread>

#include "tests/common/ring/ring_fixture.h"

namespace headrace::ring {
namespace {

using Outcome = RingReader::Outcome;

std::unique_ptr<RingReader> AttachSameMapping(const RingWriter& writer) {
  auto* base = reinterpret_cast<uint8_t*>(const_cast<RingHeader*>(&writer.header()));
  auto reader = RingReader::Attach(base, writer.header().file_bytes);
  EXPECT_TRUE(reader.ok()) << reader.status().ToString();
  return reader.ok() ? std::move(*reader) : nullptr;
}

// Releases what it is given, shuffled a little.
class Releaser {
 public:
  explicit Releaser(RingReader& reader) : reader_(reader), thread_([this] { Run(); }) {}
  ~Releaser() {
    {
      std::lock_guard lock(mutex_);
      done_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  void Give(const SlotView& view) {
    {
      std::lock_guard lock(mutex_);
      views_.push_back(view);
    }
    changed_.notify_one();
  }

 private:
  void Run() {
    std::mt19937 random(1);
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return done_ || !views_.empty(); });
      if (views_.empty()) return;
      size_t pick = random() % views_.size();
      const SlotView view = views_[pick];
      views_.erase(views_.begin() + static_cast<std::ptrdiff_t>(pick));
      lock.unlock();
      reader_.Release(view);
      lock.lock();
    }
  }

  RingReader& reader_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<SlotView> views_;
  bool done_ = false;
  std::thread thread_;
};

TEST_F(RingTest, EveryBatchOnceWithReleasesFromAnotherThread) {
  constexpr uint64_t kEpochs = 3;
  constexpr uint64_t kSteps = 3000;
  auto writer = OpenWriter(4);
  auto reader = AttachSameMapping(*writer);
  std::thread loader([&] {
    for (uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
      for (uint64_t step = 0; step < kSteps; ++step) ASSERT_TRUE(Write(*writer, epoch, step).ok());
      ASSERT_TRUE(WriteEnd(*writer, epoch, kSteps).ok());
    }
  });
  {
    Releaser releaser(*reader);
    for (uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
      ASSERT_EQ(reader->StartIteration(), epoch);
      uint64_t step = 0;
      SlotView view;
      while (true) {
        auto outcome = reader->Next(epoch, 10000, &view);
        ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
        ASSERT_NE(static_cast<int>(*outcome), static_cast<int>(Outcome::kTimeout));
        if (*outcome == Outcome::kEndOfEpoch) break;
        ASSERT_EQ(view.step, step);
        ASSERT_TRUE(Intact(view));
        step += 1;
        releaser.Give(view);
      }
      EXPECT_EQ(step, kSteps);
    }
  }
  loader.join();
  EXPECT_EQ(writer->occupancy(), 0u);
}

TEST_F(RingTest, EarlyIterationsFreeALoaderThatWaits) {
  auto writer = OpenWriter(2);
  auto reader = AttachSameMapping(*writer);
  constexpr uint64_t kEpochs = 200;
  std::thread loader([&] {
    std::atomic<bool> never{false};
    for (uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
      // More steps than anybody reads: only the next iteration ends the epoch.
      for (uint64_t step = 0;; ++step) {
        Status status = Write(*writer, epoch, step);
        if (status.code() == Code::kCancelled) break;
        ASSERT_TRUE(status.ok()) << status.ToString();
      }
    }
  });
  SlotView view;
  for (uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
    ASSERT_EQ(reader->StartIteration(), epoch);
    for (uint64_t step = 0; step < epoch % 5; ++step) {
      auto outcome = reader->Next(epoch, 10000, &view);
      ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
      ASSERT_EQ(static_cast<int>(*outcome), static_cast<int>(Outcome::kBatch));
      ASSERT_EQ(view.epoch, epoch);
      ASSERT_EQ(view.step, step);
      ASSERT_TRUE(Intact(view));
      reader->Release(view);
    }
  }
  reader->StartIteration();
  loader.join();
}

TEST_F(RingTest, FailureWakesASleepingReader) {
  auto writer = OpenWriter(2);
  auto reader = AttachSameMapping(*writer);
  reader->StartIteration();
  std::thread loader([&] {
    while (writer->header().client_waiting.load() == 0) std::this_thread::yield();
    writer->Fail(NotFound("gone"));
  });
  SlotView view;
  EXPECT_EQ(reader->Next(0, 60000, &view).status().ToString(), "NotFound: gone");
  loader.join();
}

TEST_F(RingTest, ReleaseByAnotherThreadEndsTheWaitOnHeldSlots) {
  auto writer = OpenWriter(2);
  auto reader = AttachSameMapping(*writer);
  reader->StartIteration();
  SlotView held[2];
  for (uint64_t step = 0; step < 2; ++step) {
    ASSERT_TRUE(Write(*writer, 0, step).ok());
    ASSERT_TRUE(reader->Next(0, 0, &held[step]).ok());
  }
  std::thread other([&] {
    reader->Release(held[0]);
    ASSERT_TRUE(Write(*writer, 0, 2).ok());
  });
  SlotView view;
  auto outcome = reader->Next(0, 60000, &view);
  ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
  EXPECT_EQ(view.step, 2u);
  other.join();
}

}  // namespace
}  // namespace headrace::ring
