// Batches that one thread takes and others read and free. (Under ThreadSanitizer a slot that comes back through the
// loader looks like a race: the ring is mapped twice, see tests/common/ring/threads_test.cc.)
#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <semaphore>
#include <thread>

#include "tests/client/client_fixture.h"

namespace headrace {
namespace {

class Queue {
 public:
  // Null ends the one who takes it.
  void Give(headrace_batch* batch) {
    {
      const std::lock_guard lock(mutex_);
      batches_.push_back(batch);
    }
    changed_.notify_one();
  }
  headrace_batch* Take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !batches_.empty(); });
    headrace_batch* const batch = batches_.front();
    batches_.pop_front();
    return batch;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<headrace_batch*> batches_;
};

TEST_F(ClientTest, BatchesAreFreedByOtherThreads) {
  constexpr int64_t kSteps = 2000;
  options_.steps = kSteps;
  auto loader = StartLoader();
  ASSERT_EQ(Connect(), HEADRACE_OK);
  headrace_iterator* iterator = Iterate(0);
  Queue taken;
  std::atomic<int64_t> labels{0};
  // One slot is never held: holding all of them for a second is an error.
  std::counting_semaphore<> may_hold(static_cast<ptrdiff_t>(options_.slots) - 1);
  const auto read = [&] {
    while (headrace_batch* batch = taken.Take()) {
      labels += FirstLabel(batch);
      headrace_batch_free(batch);
      may_hold.release();
    }
  };
  std::array<std::thread, 3> readers;
  for (std::thread& reader : readers) reader = std::thread(read);
  headrace_batch* batch = nullptr;
  int64_t steps = 0;
  for (;; ++steps) {
    may_hold.acquire();
    if (headrace_next(iterator, 10000, &batch) != HEADRACE_OK) break;
    taken.Give(batch);
  }
  for (size_t i = 0; i < readers.size(); ++i) taken.Give(nullptr);
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(steps, kSteps);
  EXPECT_EQ(labels, options_.rows * kSteps * (kSteps - 1) / 2);
}

}  // namespace
}  // namespace headrace
