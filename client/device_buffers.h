// Memory on a GPU for the batches of one replica, and the stream that fills it from the ring.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "common/gpu/context.h"
#include "common/ring/device_part.h"

namespace headrace::client {

// One thread takes and fills buffers; what says so may be called by any. The host waits for the GPU in AwaitFilled and
// CopyToHost alone: all else is ordered by events, on the GPU.
class DeviceBuffers {
 public:
  struct Buffer {
    gpu::DevicePtr memory = 0;
    gpu::Event filled = nullptr;  // the last copy into it is done
    bool filling = false;         // nobody has waited for that yet; of the thread that takes
    // Of the trainer's streams, as far as they were when it was given back; the first `users` are of its last batch.
    std::vector<gpu::Event> used;
    size_t users = 0;
  };
  struct Options {
    int gpu = 0;
    // The ring, mapped by this process: locked and known to the GPU as long as this object lives, so that copies need
    // no stop in between.
    std::span<uint8_t> ring;
    uint64_t buffer_bytes = 0;
    size_t count = 0;  // of buffers, each made when it is first needed
  };

  // Errors: those of gpu::PrimaryContext::Retain, and that the ring cannot be registered.
  static Result<std::unique_ptr<DeviceBuffers>> Create(const Options& options);
  // Waits for what the GPU still does with the buffers. REQUIRES: all are given back.
  ~DeviceBuffers();
  DeviceBuffers(const DeviceBuffers&) = delete;
  DeviceBuffers& operator=(const DeviceBuffers&) = delete;

  int gpu() const { return context_->ordinal(); }
  size_t count() const { return options_.count; }

  // A buffer that nobody has, and whose last copy was waited for: `filled` would else tell of the next copy in its
  // place, and the slot of the last one be held as long. Null if there is none. Errors: Exhausted where the GPU has no
  // memory for it; what a GiveBack ran into.
  Result<Buffer*> TryTake();
  // Sleeps until TryTake has something to say, or `stop`.
  void AwaitFree(const std::atomic<bool>& stop);
  // Whether TryTake would find one that was given back. Any thread.
  bool HasFree();
  // Makes AwaitFree look at its `stop`. Any thread.
  void Wake();

  // Enqueues the copy of `ranges` of a slot, behind what the trainer's streams still do with the buffer's last batch.
  Status Fill(Buffer& buffer, const uint8_t* slot, std::span<const ring::ByteRange> ranges);
  // Waits until the copy is done, and the slot is read.
  Status AwaitFilled(Buffer& buffer);

  // Waits for all copies, also of a Fill that failed.
  void AwaitFills();

  // Makes `stream` wait until the buffer is filled. Any thread.
  Status UseOn(const Buffer& buffer, gpu::Stream stream);
  // Copies out of a buffer when all that `user` (null: none) was given to do is done, and waits for it. Any thread.
  Status CopyToHost(const Buffer& buffer, ring::ByteRange range, gpu::Stream user, void* to);
  // The buffer may be filled again once all that these streams were given to do is done. Any thread.
  void GiveBack(Buffer* buffer, std::span<const gpu::Stream> users);

 private:
  using Current = gpu::PrimaryContext::Current;

  explicit DeviceBuffers(const Options& options) : options_(options) {}
  Status Prepare();
  Result<std::unique_ptr<Buffer>> MakeBuffer();
  Status MarkUse(Buffer& buffer, gpu::Stream user);
  Status Check(gpu::Error error, const std::string& call) const;

  // Constant after Create.
  const Options options_;
  std::unique_ptr<gpu::PrimaryContext> context_;
  bool registered_ = false;
  gpu::Stream fill_stream_ = nullptr;
  gpu::Stream read_stream_ = nullptr;

  std::vector<std::unique_ptr<Buffer>> buffers_;  // all; of the thread that takes

  std::mutex mutex_;
  std::condition_variable freed_;
  std::vector<Buffer*> free_;  // guarded by mutex_; the one that was given back first comes first
  Status failure_;             // guarded by mutex_; of a GiveBack
};

}  // namespace headrace::client
