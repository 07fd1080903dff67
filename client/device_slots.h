// A replica's ring in GPU memory, as the loader shares it: see sidecar/device/device_ring.h for the other side.
#pragma once

#include <unistd.h>

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "common/gpu/handover.h"
#include "common/gpu/shared_memory.h"
#include "common/ring/device_part.h"

namespace headrace::client {

// Those of one loader; one that comes back has others. Shared by the batches that lie there. Any thread.
class DeviceSlots {
 public:
  struct Options {
    int gpu = 0;
    int memory_fd = -1;  // neither is kept
    int handover_fd = -1;
    uint64_t slot_count = 0;
    uint64_t slot_stride = 0;
    uint64_t generation = 0;  // of the loader
  };
  // Errors: those of gpu::PrimaryContext::Retain, gpu::SharedMemory::Import and gpu::Handover::Import.
  static Result<std::unique_ptr<DeviceSlots>> Map(const Options& options);
  // Waits for the GPU, if any of the trainer's streams has yet to come to the end of a batch that it used.
  ~DeviceSlots();
  DeviceSlots(const DeviceSlots&) = delete;
  DeviceSlots& operator=(const DeviceSlots&) = delete;

  int gpu() const { return context_->ordinal(); }
  uint64_t generation() const { return options_.generation; }
  gpu::DevicePtr address(uint64_t slot) const { return memory_->address() + slot * options_.slot_stride; }

  // Copies out of a slot when all that `user` (null: none) was given to do is done, and waits for it.
  Status CopyToHost(uint64_t slot, ring::ByteRange range, gpu::Stream user, void* to);
  // The loader may fill the slot again once these streams have done all that they were given to do. REQUIRES: the slot
  // has gone back in the ring, and was not drained.
  Status GiveBack(uint64_t slot, std::span<const gpu::Stream> users);
  bool IsDrained(uint64_t slot) const { return handover_->IsDrained(slot); }
  // The loader may fill the slot now: nobody here reads it. REQUIRES: it is ours, or the loader waits for this.
  void Drain(uint64_t slot) { handover_->Drain(slot); }

 private:
  explicit DeviceSlots(const Options& options) : options_(options) {}
  Status Prepare();
  Status Check(gpu::Error error, const std::string& call) const { return context_->driver().Check(error, call); }

  // Constant after Map.
  const Options options_;
  const pid_t opened_by_ = getpid();
  std::unique_ptr<gpu::PrimaryContext> context_;
  std::unique_ptr<gpu::SharedMemory> memory_;
  std::unique_ptr<gpu::Handover> handover_;
  gpu::Stream read_stream_ = nullptr;
  gpu::Stream join_stream_ = nullptr;  // goes on when several of the trainer's streams have come to an end
  gpu::Event reached_ = nullptr;

  std::mutex mutex_;
  std::vector<bool> given_back_;  // guarded by mutex_; by slot: a stream was told to drain it
};

}  // namespace headrace::client
