// The trainer's side of one ring. The client library stands on it; so does everything else that reads a ring.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/ring/geometry.h"
#include "common/ring/layout.h"

namespace headrace::ring {

// A published batch in place. Valid until RingReader::Release(view), also if the loader dies.
struct SlotView {
  uint64_t batch = 0;  // its number in the ring
  uint32_t slot = 0;
  uint64_t epoch = 0;
  uint64_t step = 0;
  uint64_t rows = 0;
  uint32_t flags = 0;
  uint64_t device_ring = 0;  // SlotDescriptor's
  std::span<const ComponentExtent> extents;
  uint8_t* data = nullptr;  // the slot's first byte
};

// One thread at a time calls Next, Poll and StartIteration; Release may be called from any thread, in any order.
class RingReader {
 public:
  static constexpr int kHeldGraceMs = 1000;  // for releases by other threads

  // Maps the ring in `fd` (which is not kept) and checks magic, version and geometry. What the client before us had not
  // given back comes first (see layout.h). REQUIRES: no other client is attached. Errors: Corrupt, Unavailable.
  static Result<std::unique_ptr<RingReader>> Attach(int fd);
  // The same over memory that the caller keeps mapped while the reader lives: a ring of the same process.
  static Result<std::unique_ptr<RingReader>> Attach(uint8_t* base, size_t bytes);
  ~RingReader();
  RingReader(const RingReader&) = delete;
  RingReader& operator=(const RingReader&) = delete;

  // The epoch that the next iterator reads: the one after the last iterator's.
  uint64_t next_epoch() const;
  // Starts the next iterator: what is left of older epochs will be released unread. Returns the epoch it reads, which
  // is next_epoch(), or `at_least` if that is more.
  uint64_t StartIteration(uint64_t at_least = 0);
  // That the last seek asked for; 0: none.
  uint64_t seed() const { return header_->start_seed.load(std::memory_order_relaxed); }
  // Starts an iterator at any place: the loader seeks there, and what it published before is released unread.
  void StartIterationAt(const Position& start);

  enum class Outcome { kBatch, kEndOfEpoch, kTimeout };
  // The next batch of `epoch` in order. Returns at once when one is ready; else spins briefly, then sleeps until one
  // comes or timeout_ms is over. kPartialStep batches are delivered: the caller decides.
  // An epoch that is over stays over, and so does one that a newer iterator has cut short.
  // Errors: the loader's own (its code and message) once it has failed and all that it published before is read;
  // Exhausted if all slots are held unreleased and kHeldGraceMs have not changed that; Corrupt.
  [[gnu::hot]] Result<Outcome> Next(uint64_t epoch, int timeout_ms, SlotView* view);
  // The same without waiting: kTimeout if none is ready. The loader does not take it for a trainer that wants more.
  [[gnu::hot]] Result<Outcome> Poll(uint64_t epoch, SlotView* view);
  // Gives the slot back. A batch that is not held is ignored.
  void Release(const SlotView& view);

  // `skip` is called, by the thread that calls Next or StartIteration, before a slot goes back unread.
  void OnSkip(std::function<void(uint32_t slot)> skip);
  // By slot: whether it is the loader's now, given back and not published again. By the thread that calls Next, while
  // no other thread releases.
  std::vector<bool> LoadersSlots() const;

  const RingHeader& header() const { return *header_; }
  const Geometry& geometry() const;
  uint8_t* base() const;  // the mapping, for registration with a device
  size_t bytes() const;

 private:
  RingReader();
  struct Impl;
  std::unique_ptr<Impl> impl_;
  RingHeader* header_ = nullptr;
};

}  // namespace headrace::ring
