// How long a thread has waited for storage: what tells that from work where both happen within one call.
#pragma once

#include <chrono>
#include <cstdint>

namespace headrace::side {

// One read of storage, from its construction to its destruction: a block or an object's part, never one record. Reads
// from the page cache count too: nothing tells them apart.
class StorageWait {
 public:
  StorageWait() : begin_(std::chrono::steady_clock::now()) {}
  ~StorageWait() { thread_ns += static_cast<uint64_t>((std::chrono::steady_clock::now() - begin_).count()); }
  StorageWait(const StorageWait&) = delete;
  StorageWait& operator=(const StorageWait&) = delete;

  // Nanoseconds of all that the calling thread has done so far.
  static uint64_t OfThread() { return thread_ns; }

 private:
  static_assert(std::chrono::steady_clock::period::den == 1000000000 && std::chrono::steady_clock::period::num == 1);
  // Whoever measures a call that may read takes the difference: nothing between it and storage has to know of it.
  static inline thread_local uint64_t thread_ns = 0;

  const std::chrono::steady_clock::time_point begin_;
};

}  // namespace headrace::side
