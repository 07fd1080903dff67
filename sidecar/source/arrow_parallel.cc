#include "sidecar/source/arrow_parallel.h"

#include <arrow/util/thread_pool.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>

#include "common/base/cpus.h"

namespace headrace::side {
namespace {

// Outlives the call for those threads that come too late.
class Calls {
 public:
  Calls(size_t count, const std::function<arrow::Status(size_t)>& fn) : fn_(fn), count_(count), left_(count) {}

  void Work() {
    for (size_t i = next_.fetch_add(1); i < count_; i = next_.fetch_add(1)) {
      const arrow::Status status = fn_(i);
      if (!status.ok()) {
        const std::lock_guard lock(mutex_);
        if (status_.ok()) status_ = status;
      }
      if (left_.fetch_sub(1) == 1) left_.notify_all();
    }
  }

  arrow::Status Await() {
    for (size_t left = left_.load(); left > 0; left = left_.load()) left_.wait(left);
    return status_;
  }

 private:
  const std::function<arrow::Status(size_t)>& fn_;  // gone once none is left
  const size_t count_;
  std::atomic<size_t> next_{0};
  std::atomic<size_t> left_;
  std::mutex mutex_;
  arrow::Status status_;
};

size_t Threads() {
  static const size_t threads = UsableCpus();
  return threads;
}

}  // namespace

void LimitArrowThreads() {
  // The pool has one at least, which nothing is given to if there is but one CPU.
  static const arrow::Status limited =
      arrow::SetCpuThreadPoolCapacity(static_cast<int>(std::max<size_t>(Threads() - 1, 1)));
  static_cast<void>(limited);
}

arrow::Status InParallel(size_t count, const std::function<arrow::Status(size_t)>& fn) {
  const auto calls = std::make_shared<Calls>(count, fn);
  for (size_t helper = 1; helper < std::min(count, Threads()); ++helper) {
    if (!arrow::internal::GetCpuThreadPool()->Spawn([calls] { calls->Work(); }).ok()) break;
  }
  calls->Work();
  return calls->Await();
}

}  // namespace headrace::side
