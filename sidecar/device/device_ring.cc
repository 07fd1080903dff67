#include "sidecar/device/device_ring.h"

#include <algorithm>
#include <chrono>

#include "sidecar/device/device_layout.h"

namespace headrace::device {
namespace {

constexpr std::chrono::milliseconds kSlice(50);  // between two looks at `stop`

}  // namespace

DeviceRing::DeviceRing(const ring::RingWriter& ring, std::string uuid, std::vector<GpuImages> images)
    : ring_(ring),
      geometry_(ring.geometry()),
      generation_(ring.generation()),
      uuid_(std::move(uuid)),
      images_(std::move(images)) {}

Result<std::unique_ptr<DeviceRing>> DeviceRing::Create(int gpu, const ring::RingWriter& ring,
                                                       std::vector<GpuImages> images) {
  ASSIGN_OR_RETURN(std::string uuid, gpu::GpuUuid(gpu));
  std::unique_ptr<DeviceRing> device_ring(new DeviceRing(ring, std::move(uuid), std::move(images)));
  RETURN_IF_ERROR(device_ring->Prepare(gpu));
  RETURN_IF_ERROR(device_ring->Refill());
  device_ring->thread_ = std::thread([raw = device_ring.get()] { raw->Run(); });
  return device_ring;
}

Status DeviceRing::Prepare(int gpu) {
  ASSIGN_OR_RETURN(const gpu::Driver* const driver, gpu::Driver::Open());
  ASSIGN_OR_RETURN(context_, gpu::PrimaryContext::Retain(driver, gpu));
  const gpu::PrimaryContext::Current current(*context_);
  const uint64_t bytes = geometry_.slot_count * geometry_.device_stride();
  ASSIGN_OR_RETURN(memory_, gpu::SharedMemory::Create(context_.get(), bytes));
  ASSIGN_OR_RETURN(handover_, gpu::Handover::Create(context_.get(), geometry_.slot_count));
  RETURN_IF_ERROR(driver->RegisterRing(ring_.base(), geometry_.file_bytes));
  registered_ = true;
  RETURN_IF_ERROR(Check(driver->stream_create(&stream_, gpu::kStreamNonBlocking), "cuStreamCreate"));
  if (!images_.empty()) {
    ASSIGN_OR_RETURN(kernels_, ImageKernels::Load(context_.get()));
    RETURN_IF_ERROR(Check(driver->mem_alloc(&decoded_, geometry_.slot_stride),
                          "cuMemAlloc of " + std::to_string(geometry_.slot_stride) + " bytes for decoded images"));
  }
  copied_.resize(geometry_.slot_count);
  for (gpu::Event& event : copied_) {
    // Sleeps in place of spinning, which would take a core from those who decode.
    RETURN_IF_ERROR(
        Check(driver->event_create(&event, gpu::kEventBlockingSync | gpu::kEventDisableTiming), "cuEventCreate"));
  }
  return {};
}

// A trainer that lives on has what it has in the memory of the loader before us, which is there for as long as the
// trainer keeps it. A new one finds it here.
Status DeviceRing::Refill() {
  const gpu::PrimaryContext::Current current(*context_);
  for (uint64_t slot = 0; slot < geometry_.slot_count; ++slot) {
    if (!ring_.clients_slots()[slot]) continue;
    const std::span<const ring::ComponentExtent> told = ring_.clients_extents(slot);
    std::vector<ring::ComponentExtent> extents(told.begin(), told.end());
    if (!images_.empty()) PlaceInDeviceSlot(images_, extents);
    // What another process has written over what we said is no batch of ours.
    if (std::equal(extents.begin(), extents.end(), told.begin())) RETURN_IF_ERROR(EnqueueFill(slot, extents));
    handover_->MarkFilled(slot);
  }
  return Check(context_->driver().stream_synchronize(stream_), "copying a ring to the GPU: cuStreamSynchronize");
}

// Errors here are those of a process that ends, whose driver has let go of everything itself.
DeviceRing::~DeviceRing() {
  if (thread_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  if (context_ == nullptr) return;
  const gpu::Driver& driver = context_->driver();
  const gpu::PrimaryContext::Current current(*context_);
  if (stream_ != nullptr) driver.stream_synchronize(stream_);
  for (const gpu::Event event : copied_) {
    if (event != nullptr) driver.event_destroy(event);
  }
  if (stream_ != nullptr) driver.stream_destroy(stream_);
  if (decoded_ != 0) driver.mem_free(decoded_);
  kernels_.reset();
  if (registered_) driver.mem_host_unregister(ring_.base());
  handover_.reset();
  memory_.reset();
}

uint64_t DeviceRing::IndexOf(const uint8_t* slot) const {
  return static_cast<uint64_t>(slot - ring_.base() - geometry_.data_offset) / geometry_.slot_stride;
}

Status DeviceRing::EnqueueCopy(uint64_t slot, ring::ByteRange range, gpu::DevicePtr to) {
  const uint64_t bytes = range.end - range.begin;
  const uint8_t* const from = ring_.base() + geometry_.data_offset + slot * geometry_.slot_stride + range.begin;
  return Check(context_->driver().memcpy_htod_async(to, from, bytes, stream_),
               "cuMemcpyHtoDAsync of " + std::to_string(bytes) + " bytes");
}

// The stream does one batch's images after the other's, so one memory is enough for what they are made of.
Status DeviceRing::EnqueueImages(const GpuImages& images, const ring::ComponentExtent& extent, uint64_t slot) {
  const gpu::DevicePtr decoded = decoded_ + extent.offset;
  RETURN_IF_ERROR(EnqueueCopy(slot, {extent.offset, extent.offset + extent.bytes}, decoded));
  const auto count = static_cast<int64_t>(extent.bytes / images.image_bytes());
  return kernels_->Enqueue(images.program, decoded, count, SlotAddress(slot) + extent.device_offset, stream_);
}

Status DeviceRing::EnqueueFill(uint64_t slot, std::span<const ring::ComponentExtent> extents) {
  if (images_.empty()) {
    for (const ring::ByteRange& range : ring::DeviceRanges(extents)) {
      RETURN_IF_ERROR(EnqueueCopy(slot, range, SlotAddress(slot) + range.begin));
    }
    return {};
  }
  for (size_t c = 0; c < extents.size(); ++c) {
    const ring::ComponentExtent& extent = extents[c];
    if (!ring::GoesToDevice(extent) || extent.bytes == 0) continue;
    if (const GpuImages* const images = FindImages(images_, c)) {
      RETURN_IF_ERROR(EnqueueImages(*images, extent, slot));
    } else {
      const ring::ByteRange range{extent.offset, extent.offset + extent.bytes};
      RETURN_IF_ERROR(EnqueueCopy(slot, range, SlotAddress(slot) + extent.device_offset));
    }
  }
  return {};
}

// REQUIRES: mutex_ is held.
Status DeviceRing::Enqueue(uint64_t slot, std::span<const ring::ComponentExtent> extents) {
  const gpu::PrimaryContext::Current current(*context_);
  if (!handover_->IsDrained(slot)) {
    if (reader_ == Reader::kHost) {
      handover_->Drain(slot);
    } else {
      RETURN_IF_ERROR(handover_->AwaitDrained(slot, stream_));
    }
  }
  RETURN_IF_ERROR(EnqueueFill(slot, extents));
  return Check(context_->driver().event_record(copied_[slot], stream_), "cuEventRecord");
}

void DeviceRing::Send(const uint8_t* slot, std::span<ring::ComponentExtent> extents, Done done, void* context) {
  const uint64_t index = IndexOf(slot);
  if (!images_.empty()) PlaceInDeviceSlot(images_, extents);
  {
    const std::lock_guard lock(mutex_);
    copies_.push_back({index, done, context, Enqueue(index, extents)});
  }
  changed_.notify_all();
}

void DeviceRing::MarkFilled(const uint8_t* slot) { handover_->MarkFilled(IndexOf(slot)); }

void DeviceRing::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ended_ || !copies_.empty(); });
    if (copies_.empty()) return;
    const uint64_t slot = copies_.front().slot;
    Status status = copies_.front().status;
    lock.unlock();
    if (status.ok()) {
      const gpu::PrimaryContext::Current current(*context_);
      status =
          Check(context_->driver().event_synchronize(copied_[slot]), "copying a batch to the GPU: cuEventSynchronize");
    }
    lock.lock();
    const Copy copy = copies_.front();
    copies_.pop_front();
    if (copy.done != nullptr) copy.done(copy.context, status);
    changed_.notify_all();
  }
}

void DeviceRing::Drain(const std::atomic<bool>& stop) {
  std::unique_lock lock(mutex_);
  while (!copies_.empty() && !stop.load(std::memory_order_relaxed)) changed_.wait_for(lock, kSlice);
  for (Copy& copy : copies_) copy.done = nullptr;
}

bool DeviceRing::idle() {
  const std::lock_guard lock(mutex_);
  return copies_.empty();
}

void DeviceRing::SetReader(Reader reader) {
  const std::lock_guard lock(mutex_);
  reader_ = reader;
  if (reader == Reader::kDevice) return;
  // A trainer before this one may have ended without a word on them.
  for (const Copy& copy : copies_) {
    if (!handover_->IsDrained(copy.slot)) handover_->Drain(copy.slot);
  }
}

Result<DeviceRings> MakeDeviceRings(const std::vector<std::unique_ptr<ring::RingWriter>>& rings,
                                    const std::vector<GpuImages>& images) {
  ASSIGN_OR_RETURN(const int gpus, gpu::CountGpus());
  DeviceRings device_rings;
  for (size_t replica = 0; replica < rings.size(); ++replica) {
    const int gpu = static_cast<int>(replica % static_cast<size_t>(gpus));
    auto made = DeviceRing::Create(gpu, *rings[replica], images);
    RETURN_IF_ERROR(made, "a ring for replica " + std::to_string(replica) + " on GPU " + std::to_string(gpu));
    device_rings.push_back(std::move(*made));
  }
  return device_rings;
}

}  // namespace headrace::device
