// The bad records that spec.onError lets a loader leave out.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_set>

#include "common/base/status.h"
#include "common/spec/input_spec.h"

namespace headrace::side {

// Used by any thread.
class Quarantine {
 public:
  // What is left out is listed in `path`, one JSON object a line, each record once; "": nowhere.
  void Configure(const OnError& on_error, std::string path);

  bool skips() const { return on_error_.skip; }
  // Takes a record's error, which names file, place and reason. ok: the record is to be left out. Otherwise the input
  // fails, with the status returned: the policy is Fail, the fault is not the record's, or there were too many.
  Status Take(const Status& error);

  void CountGood(uint64_t records) { good_.fetch_add(records, std::memory_order_relaxed); }
  uint64_t skipped() const { return skipped_.load(std::memory_order_relaxed); }  // each as often as it was left out

 private:
  OnError on_error_;
  std::string path_;
  std::atomic<uint64_t> good_{0};
  std::atomic<uint64_t> skipped_{0};
  std::mutex mutex_;
  std::unordered_set<std::string> records_;  // by their errors; no more than the budget
};

}  // namespace headrace::side
