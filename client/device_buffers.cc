#include "client/device_buffers.h"

#include <algorithm>

namespace headrace::client {

Result<std::unique_ptr<DeviceBuffers>> DeviceBuffers::Create(const Options& options) {
  std::unique_ptr<DeviceBuffers> buffers(new DeviceBuffers(options));
  RETURN_IF_ERROR(buffers->Prepare());
  return buffers;
}

Status DeviceBuffers::Check(gpu::Error error, const std::string& call) const {
  return context_->driver().Check(error, call);
}

Status DeviceBuffers::Prepare() {
  ASSIGN_OR_RETURN(const gpu::Driver* const driver, gpu::Driver::Open());
  ASSIGN_OR_RETURN(context_, gpu::PrimaryContext::Retain(driver, options_.gpu));
  const Current current(*context_);
  // For all contexts of the process, since the trainer may use more GPUs than one.
  RETURN_IF_ERROR(driver->RegisterRing(options_.ring.data(), options_.ring.size()));
  registered_ = true;
  RETURN_IF_ERROR(Check(driver->stream_create(&fill_stream_, gpu::kStreamNonBlocking), "cuStreamCreate"));
  return Check(driver->stream_create(&read_stream_, gpu::kStreamNonBlocking), "cuStreamCreate");
}

// Errors here are those of a process that ends, whose driver has let go of everything itself.
DeviceBuffers::~DeviceBuffers() {
  if (context_ == nullptr) return;
  const gpu::Driver& driver = context_->driver();
  const Current current(*context_);
  if (fill_stream_ != nullptr) driver.stream_synchronize(fill_stream_);
  for (const auto& buffer : buffers_) {
    for (size_t i = 0; i < buffer->users; ++i) driver.event_synchronize(buffer->used[i]);
    for (const gpu::Event event : buffer->used) driver.event_destroy(event);
    driver.event_destroy(buffer->filled);
    driver.mem_free(buffer->memory);
  }
  if (fill_stream_ != nullptr) driver.stream_destroy(fill_stream_);
  if (read_stream_ != nullptr) driver.stream_destroy(read_stream_);
  if (registered_) driver.mem_host_unregister(options_.ring.data());
}

Result<std::unique_ptr<DeviceBuffers::Buffer>> DeviceBuffers::MakeBuffer() {
  const gpu::Driver& driver = context_->driver();
  const Current current(*context_);
  auto buffer = std::make_unique<Buffer>();
  // Sleeps in place of spinning, which would take a core from the trainer.
  RETURN_IF_ERROR(
      Check(driver.event_create(&buffer->filled, gpu::kEventBlockingSync | gpu::kEventDisableTiming), "cuEventCreate"));
  const Status allocated = Check(driver.mem_alloc(&buffer->memory, options_.buffer_bytes),
                                 "cuMemAlloc of " + std::to_string(options_.buffer_bytes) + " bytes on GPU " +
                                     std::to_string(gpu()) + " for a batch");
  if (!allocated.ok()) {
    driver.event_destroy(buffer->filled);
    return allocated;
  }
  return buffer;
}

Result<DeviceBuffers::Buffer*> DeviceBuffers::TryTake() {
  // All of them before one is used again: the copy into one that was freed waits for what the trainer's streams have
  // yet to do with it, and a trainer's host is often steps ahead of its streams.
  const bool makes = buffers_.size() < options_.count;
  {
    const std::lock_guard lock(mutex_);
    RETURN_IF_ERROR(failure_);
    if (!makes) {
      const auto oldest =
          std::find_if(free_.begin(), free_.end(), [](const Buffer* buffer) { return !buffer->filling; });
      if (oldest == free_.end()) return static_cast<Buffer*>(nullptr);
      Buffer* const buffer = *oldest;
      free_.erase(oldest);
      return buffer;
    }
  }
  ASSIGN_OR_RETURN(auto buffer, MakeBuffer());
  buffers_.push_back(std::move(buffer));
  return buffers_.back().get();
}

void DeviceBuffers::AwaitFree(const std::atomic<bool>& stop) {
  std::unique_lock lock(mutex_);
  freed_.wait(lock, [&] { return stop || !free_.empty() || !failure_.ok(); });
}

bool DeviceBuffers::HasFree() {
  const std::lock_guard lock(mutex_);
  return !free_.empty();
}

void DeviceBuffers::Wake() {
  // Whoever is between its look at `stop` and its sleep holds the mutex.
  { const std::lock_guard lock(mutex_); }
  freed_.notify_all();
}

Status DeviceBuffers::Fill(Buffer& buffer, const uint8_t* slot, std::span<const ring::ByteRange> ranges) {
  const gpu::Driver& driver = context_->driver();
  const Current current(*context_);
  for (size_t i = 0; i < buffer.users; ++i) {
    RETURN_IF_ERROR(Check(driver.stream_wait_event(fill_stream_, buffer.used[i], 0), "cuStreamWaitEvent"));
  }
  buffer.users = 0;
  for (const ring::ByteRange& range : ranges) {
    const uint64_t bytes = range.end - range.begin;
    RETURN_IF_ERROR(
        Check(driver.memcpy_htod_async(buffer.memory + range.begin, slot + range.begin, bytes, fill_stream_),
              "cuMemcpyHtoDAsync of " + std::to_string(bytes) + " bytes"));
  }
  RETURN_IF_ERROR(Check(driver.event_record(buffer.filled, fill_stream_), "cuEventRecord"));
  buffer.filling = true;
  return {};
}

Status DeviceBuffers::AwaitFilled(Buffer& buffer) {
  const Current current(*context_);
  buffer.filling = false;
  return Check(context_->driver().event_synchronize(buffer.filled), "copying a batch to the GPU: cuEventSynchronize");
}

// An error here is the one that the Fill has told.
void DeviceBuffers::AwaitFills() {
  const Current current(*context_);
  context_->driver().stream_synchronize(fill_stream_);
}

Status DeviceBuffers::UseOn(const Buffer& buffer, gpu::Stream stream) {
  const Current current(*context_);
  return Check(context_->driver().stream_wait_event(stream, buffer.filled, 0), "cuStreamWaitEvent");
}

Status DeviceBuffers::CopyToHost(const Buffer& buffer, ring::ByteRange range, gpu::Stream user, void* to) {
  const gpu::Driver& driver = context_->driver();
  const Current current(*context_);
  const gpu::Stream stream = user != nullptr ? user : read_stream_;
  const uint64_t bytes = range.end - range.begin;
  RETURN_IF_ERROR(Check(driver.stream_wait_event(stream, buffer.filled, 0), "cuStreamWaitEvent"));
  if (bytes > 0) {
    RETURN_IF_ERROR(Check(driver.memcpy_dtoh_async(to, buffer.memory + range.begin, bytes, stream),
                          "cuMemcpyDtoHAsync of " + std::to_string(bytes) + " bytes"));
  }
  return Check(driver.stream_synchronize(stream), "cuStreamSynchronize");
}

Status DeviceBuffers::MarkUse(Buffer& buffer, gpu::Stream user) {
  const gpu::Driver& driver = context_->driver();
  if (buffer.users == buffer.used.size()) {
    gpu::Event event = nullptr;
    RETURN_IF_ERROR(Check(driver.event_create(&event, gpu::kEventDisableTiming), "cuEventCreate"));
    buffer.used.push_back(event);
  }
  RETURN_IF_ERROR(Check(driver.event_record(buffer.used[buffer.users], user),
                        "giving a batch back: cuEventRecord on a stream that it was used on, which must live as long"));
  buffer.users += 1;
  return {};
}

void DeviceBuffers::GiveBack(Buffer* buffer, std::span<const gpu::Stream> users) {
  Status marked;
  {
    const Current current(*context_);
    for (const gpu::Stream user : users) {
      if (marked.ok()) marked = MarkUse(*buffer, user);
    }
  }
  {
    const std::lock_guard lock(mutex_);
    free_.push_back(buffer);
    // Nobody knows when such a buffer may be filled again: nothing more is.
    if (failure_.ok()) failure_ = marked;
  }
  freed_.notify_all();
}

}  // namespace headrace::client
