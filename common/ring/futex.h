// Sleeping on a counter that two processes share.
//
// The flag handshake of a side that waits:            of a side that writes:
//   waiting = 1                (seq_cst)                counter = n   (seq_cst)
//   recheck counter            (seq_cst)                if waiting    (seq_cst)
//   Wait(counter)                                          waiting = 0, Wake(counter)
// The four accesses have one total order, so either the sleeper sees the counter or the writer sees the flag. They are
// seq_cst accesses and not fences, which ThreadSanitizer cannot see. A wake-up without a change of the counter (a
// failure, a new iteration) can be missed, so sleeps are cut into slices.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <climits>
#include <cstdint>
#include <ctime>

namespace headrace::ring {

inline constexpr int kSleepSliceMs = 50;
// About two microseconds: longer would take a core from the side that is waited for.
inline constexpr int kSpinRounds = 64;

static_assert(std::endian::native == std::endian::little, "the futex word is the counter's first four bytes");

inline void FutexWait(std::atomic<uint64_t>& counter, uint64_t seen, int timeout_ms) {
  timespec timeout{timeout_ms / 1000, (timeout_ms % 1000) * 1000000L};
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&counter), FUTEX_WAIT, static_cast<uint32_t>(seen), &timeout, nullptr,
          0);
}

// Wakes the other side if it sleeps on `counter`.
inline void WakeIfWaiting(std::atomic<uint32_t>& waiting, std::atomic<uint64_t>& counter) {
  if (waiting.load(std::memory_order_seq_cst) == 0) return;
  if (waiting.exchange(0, std::memory_order_seq_cst) == 0) return;
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&counter), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

inline void CpuRelax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

inline uint64_t MonotonicNs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

// For a counter with one writer, which needs no read-modify-write.
inline void Add(std::atomic<uint64_t>& counter, uint64_t amount) {
  counter.store(counter.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
}

}  // namespace headrace::ring
