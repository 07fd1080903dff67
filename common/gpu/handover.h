// Slots of GPU memory handed to and fro between two processes in the order of their streams, so that neither side's CPU
// stands in between.
//
// Each slot has two counters in memory that both processes, and their GPUs, see:
//   filled    how often a batch was published in the slot; the loader's CPU counts, once the copy is done
//   drained   how many of these nobody reads any more; the trainer's stream writes it, behind all that used the batch
// The loader's stream waits until `drained` has reached `filled` before it copies into the slot again.
#pragma once

#include <memory>

#include "common/gpu/context.h"

namespace headrace::gpu {

// Any thread. Streams must be of the context's GPU.
class Handover {
 public:
  // Counters for a new memory, all drained. Errors: Exhausted, Unavailable. `context` must outlive this.
  static Result<std::unique_ptr<Handover>> Create(const PrimaryContext* context, uint64_t slots);
  // Maps those that another process made. `fd` is not kept. Errors: Corrupt where there are fewer.
  static Result<std::unique_ptr<Handover>> Import(const PrimaryContext* context, int fd, uint64_t slots);
  // REQUIRES: no stream has yet to read or write them.
  ~Handover();
  Handover(const Handover&) = delete;
  Handover& operator=(const Handover&) = delete;

  int fd() const { return fd_; }  // what others import; -1 where this was imported

  // Of the loader: before it publishes a batch in the slot. REQUIRES: IsDrained(slot).
  void MarkFilled(uint64_t slot);
  // Makes the stream wait until the slot is drained.
  Status AwaitDrained(uint64_t slot, Stream stream);

  bool IsDrained(uint64_t slot) const;
  // Nobody reads what was filled last: now, or once the stream has done what it was given to do. REQUIRES: the slot is
  // not drained, and whoever filled it does nothing with it until it is.
  void Drain(uint64_t slot);
  Status DrainBehind(uint64_t slot, Stream stream);

 private:
  struct Slot;

  Handover(const PrimaryContext* context, uint64_t slots) : context_(*context), slots_(slots) {}
  Status Map(int fd);
  Slot& At(uint64_t slot) const;
  DevicePtr DrainedAddress(uint64_t slot) const;

  const PrimaryContext& context_;
  const uint64_t slots_;
  void* memory_ = nullptr;
  uint64_t bytes_ = 0;
  bool registered_ = false;
  DevicePtr address_ = 0;
  int fd_ = -1;
};

}  // namespace headrace::gpu
