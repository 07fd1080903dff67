// The loader's side of one ring.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/ring/geometry.h"
#include "common/ring/layout.h"

namespace headrace::ring {

struct RingGeometry {
  uint64_t slot_count = 2;         // at least 2
  uint64_t slot_bytes = 0;         // largest batch, all components with their alignment; rounded up to pages
  uint64_t device_slot_bytes = 0;  // of it in GPU memory, where that is laid out by itself; else 0
  uint32_t component_count = 1;
  std::string plan_hash;
  uint32_t num_workers = 1, worker_index = 0, replicas_per_worker = 1, replica = 0;
};

inline constexpr uint64_t kAnyEpoch = ~uint64_t{0};

// Used by one thread; header() and occupancy() by any.
class RingWriter {
 public:
  // Creates the file at `path`, or takes over the one there if plan and geometry are the same (a restarted loader: what
  // was published and not released survives). Memory is reserved now, so that a volume too small is an error here
  // (Exhausted, with both sizes) and not a SIGBUS later.
  static Result<std::unique_ptr<RingWriter>> Open(const std::string& path, const RingGeometry& geometry);
  ~RingWriter();
  RingWriter(const RingWriter&) = delete;
  RingWriter& operator=(const RingWriter&) = delete;

  uint64_t slot_bytes() const;  // the geometry's, rounded up to pages
  const Geometry& geometry() const;
  uint8_t* base() const;  // the mapping, for registration with a device
  uint64_t generation() const { return header_->generation; }
  // By slot: whether it was with the client when the ring was taken over.
  const std::vector<bool>& clients_slots() const;
  // Where the components of a batch lie that the client had in the slot when the ring was taken over. Empty where no
  // client that attaches now gets it. Errors: none; what another process wrote there and no ring can hold is left out.
  std::span<const ComponentExtent> clients_extents(uint64_t slot) const;

  // Where a loader that took the ring over must go on: the first (epoch, step) not yet published.
  uint64_t next_epoch() const;
  uint64_t next_step() const;

  // Of the last batch published; 0 if there is none.
  uint64_t seed() const;

  // Where the client wants to be instead, if it has said so since the last call: by a seek, which is followed from now
  // on (next_epoch() and next_step() are there), or by an iterator over a later epoch.
  std::optional<Position> TakeSeek();
  std::optional<uint64_t> TakeNewerEpoch();

  // Waits for a free slot and returns its memory (slot_bytes long), aligned to pages. Several may be reserved at a
  // time. Errors: Cancelled soon after `stop` becomes true, or when the client wants to be elsewhere than in `epoch`;
  // Corrupt if the client wrote counters that cannot be.
  Result<uint8_t*> Reserve(const std::atomic<bool>& stop, uint64_t epoch = kAnyEpoch);
  // The same without waiting: nullptr if no slot is free.
  Result<uint8_t*> TryReserve(uint64_t epoch = kAnyEpoch);
  // Sleeps until TryReserve has something to say, or `stop`.
  void AwaitRoom(const std::atomic<bool>& stop, uint64_t epoch = kAnyEpoch);
  // Forgets all that was reserved and is not published.
  void Unreserve();
  // Whether the client asks for more than is published.
  bool Demanded() const;
  // Sleeps until the client does something, for kSleepSliceMs at the most.
  void AwaitClient();

  // Publishes the slot that was reserved first. REQUIRES: there is one. `extents` has component_count entries, or none
  // for a slot without data.
  void Publish(const SlotDescriptor& descriptor, std::span<const ComponentExtent> extents);
  // Tells the reader, now and for good, why no more batches come. The first error stays.
  void Fail(const Status& error);

  uint64_t occupancy() const;  // published, not yet released
  const RingHeader& header() const { return *header_; }
  int fd() const;

 private:
  RingWriter();
  // Neither published nor reserved. Errors as TryReserve's.
  Result<uint64_t> FreeSlots(uint64_t epoch) const;
  struct Impl;
  std::unique_ptr<Impl> impl_;
  RingHeader* header_ = nullptr;
};

}  // namespace headrace::ring
