// One replica's ring in the memory of a GPU.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "common/gpu/handover.h"
#include "common/gpu/shared_memory.h"
#include "common/ring/device_part.h"
#include "common/ring/writer.h"
#include "common/spec/gpu_images.h"
#include "sidecar/device/images.h"

namespace headrace::device {

// Mirrors a ring: slot for slot, with the same places in both. A batch is decoded into its slot in host memory, copied
// to the same slot here, and published when the copy is done, so nobody ever sees half of one. The trainer maps the
// memory and reads it without a copy; when it may be overwritten is between its streams and ours
// (common/gpu/handover.h).
//
// Where the GPU does the last maps of images, slots here are laid out by themselves (sidecar/device/device_layout.h):
// images are copied to a memory beside them, and the kernels write what they make of them into the slot.
//
// One thread sends and drains; what says so may be called by any.
class DeviceRing {
 public:
  // Mirrors `ring`, which must outlive this, on GPU `gpu` of this process. What the client already has of the ring,
  // from a loader before us, is brought there now. Errors: those of gpu::PrimaryContext::Retain,
  // gpu::SharedMemory::Create and, if there are images, ImageKernels::Load. REQUIRES: the ring's slots in GPU memory
  // are laid out by themselves if and only if there are images.
  static Result<std::unique_ptr<DeviceRing>> Create(int gpu, const ring::RingWriter& ring,
                                                    std::vector<GpuImages> images);
  // REQUIRES: idle(), or that what its stream waits for will come.
  ~DeviceRing();
  DeviceRing(const DeviceRing&) = delete;
  DeviceRing& operator=(const DeviceRing&) = delete;

  const std::string& gpu() const { return uuid_; }  // any thread, as the two below
  uint64_t generation() const { return generation_; }
  int memory_fd() const { return memory_->fd(); }
  int handover_fd() const { return handover_->fd(); }

  // Brings the components of a written slot that go to a GPU there, behind all that trainers' streams still do with
  // what was there before, and says in `extents` where they lie. `done` is called once they are there, on another
  // thread, and must be brief.
  using Done = void (*)(void* context, const Status& status);
  void Send(const uint8_t* slot, std::span<ring::ComponentExtent> extents, Done done, void* context);
  // Counts a batch that is to be published. REQUIRES: the copy into its slot is done.
  void MarkFilled(const uint8_t* slot);

  // Waits until all copies are done. Once `stop` is true, no longer: then their `done` will not be called.
  void Drain(const std::atomic<bool>& stop);
  // Whether nothing is being copied. Any thread.
  bool idle();

  // Who reads the ring from now on: a client that takes device memory and says when it is done with it, or one that
  // does not, after which all that is given back may be overwritten. Any thread.
  enum class Reader { kDevice, kHost };
  void SetReader(Reader reader);

 private:
  struct Copy {
    uint64_t slot;
    Done done;
    void* context;
    Status status;
  };

  DeviceRing(const ring::RingWriter& ring, std::string uuid, std::vector<GpuImages> images);
  Status Prepare(int gpu);
  // Fills the slots that the client has.
  Status Refill();
  Status Enqueue(uint64_t slot, std::span<const ring::ComponentExtent> extents);
  // Fills a slot, on stream_, with what goes there of a batch.
  Status EnqueueFill(uint64_t slot, std::span<const ring::ComponentExtent> extents);
  Status EnqueueImages(const GpuImages& images, const ring::ComponentExtent& extent, uint64_t slot);
  Status EnqueueCopy(uint64_t slot, ring::ByteRange range, gpu::DevicePtr to);
  void Run();
  uint64_t IndexOf(const uint8_t* slot) const;
  gpu::DevicePtr SlotAddress(uint64_t slot) const { return memory_->address() + slot * geometry_.device_stride(); }
  Status Check(gpu::Error error, const std::string& call) const { return context_->driver().Check(error, call); }

  // Constant after Create.
  const ring::RingWriter& ring_;
  const ring::Geometry geometry_;
  const uint64_t generation_;
  const std::string uuid_;
  const std::vector<GpuImages> images_;
  std::unique_ptr<gpu::PrimaryContext> context_;
  bool registered_ = false;
  std::unique_ptr<gpu::SharedMemory> memory_;
  std::unique_ptr<ImageKernels> kernels_;  // if there are images
  gpu::DevicePtr decoded_ = 0;             // one batch's images, at their places in the ring's slot; stream_'s alone
  std::unique_ptr<gpu::Handover> handover_;
  gpu::Stream stream_ = nullptr;
  std::vector<gpu::Event> copied_;  // by slot

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::deque<Copy> copies_;  // under way, the oldest first
  Reader reader_ = Reader::kDevice;
  bool ended_ = false;
  std::thread thread_;  // sleeps until copies are done
};

// By replica; empty where the loader fills no GPU memory.
using DeviceRings = std::vector<std::unique_ptr<DeviceRing>>;

// Mirrors each of the rings, replica r on GPU r of this process, as far as there are so many. Errors: those of
// gpu::CountGpus and DeviceRing::Create.
Result<DeviceRings> MakeDeviceRings(const std::vector<std::unique_ptr<ring::RingWriter>>& rings,
                                    const std::vector<GpuImages>& images);

}  // namespace headrace::device
