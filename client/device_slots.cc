#include "client/device_slots.h"

namespace headrace::client {
namespace {

constexpr char kGivingBack[] = "giving a batch back, behind a stream that it was used on, which must live as long";

}  // namespace

Result<std::unique_ptr<DeviceSlots>> DeviceSlots::Map(const Options& options) {
  std::unique_ptr<DeviceSlots> slots(new DeviceSlots(options));
  RETURN_IF_ERROR(slots->Prepare());
  return slots;
}

Status DeviceSlots::Prepare() {
  ASSIGN_OR_RETURN(const gpu::Driver* const driver, gpu::Driver::Open());
  ASSIGN_OR_RETURN(context_, gpu::PrimaryContext::Retain(driver, options_.gpu));
  const gpu::PrimaryContext::Current current(*context_);
  const uint64_t bytes = options_.slot_count * options_.slot_stride;
  ASSIGN_OR_RETURN(memory_, gpu::SharedMemory::Import(context_.get(), options_.memory_fd, bytes));
  ASSIGN_OR_RETURN(handover_, gpu::Handover::Import(context_.get(), options_.handover_fd, options_.slot_count));
  given_back_.resize(options_.slot_count);
  RETURN_IF_ERROR(Check(driver->stream_create(&read_stream_, gpu::kStreamNonBlocking), "cuStreamCreate"));
  RETURN_IF_ERROR(Check(driver->stream_create(&join_stream_, gpu::kStreamNonBlocking), "cuStreamCreate"));
  return Check(driver->event_create(&reached_, gpu::kEventDisableTiming), "cuEventCreate");
}

// Errors here are those of a process that ends, whose driver has let go of everything itself.
DeviceSlots::~DeviceSlots() {
  if (context_ == nullptr) return;
  if (getpid() != opened_by_) {
    // A child by fork, which may make no call of CUDA.
    static_cast<void>(handover_.release());
    static_cast<void>(memory_.release());
    static_cast<void>(context_.release());
    return;
  }
  const gpu::Driver& driver = context_->driver();
  const gpu::PrimaryContext::Current current(*context_);
  // The memory must not go while a kernel reads it. (cuMemFree waits so, too.)
  bool in_use = false;
  for (uint64_t slot = 0; slot < given_back_.size(); ++slot) {
    in_use = in_use || (given_back_[slot] && !IsDrained(slot));
  }
  if (in_use) driver.ctx_synchronize();
  if (reached_ != nullptr) driver.event_destroy(reached_);
  if (join_stream_ != nullptr) driver.stream_destroy(join_stream_);
  if (read_stream_ != nullptr) driver.stream_destroy(read_stream_);
  handover_.reset();
  memory_.reset();
}

Status DeviceSlots::CopyToHost(uint64_t slot, ring::ByteRange range, gpu::Stream user, void* to) {
  const gpu::Driver& driver = context_->driver();
  const gpu::PrimaryContext::Current current(*context_);
  const gpu::Stream stream = user != nullptr ? user : read_stream_;
  const uint64_t bytes = range.end - range.begin;
  if (bytes > 0) {
    RETURN_IF_ERROR(Check(driver.memcpy_dtoh_async(to, address(slot) + range.begin, bytes, stream),
                          "cuMemcpyDtoHAsync of " + std::to_string(bytes) + " bytes"));
  }
  return Check(driver.stream_synchronize(stream), "cuStreamSynchronize");
}

Status DeviceSlots::GiveBack(uint64_t slot, std::span<const gpu::Stream> users) {
  if (users.empty()) {
    Drain(slot);
    return {};
  }
  const gpu::Driver& driver = context_->driver();
  const gpu::PrimaryContext::Current current(*context_);
  const std::lock_guard lock(mutex_);
  given_back_[slot] = true;
  if (users.size() == 1) return handover_->DrainBehind(slot, users[0]).WithContext(kGivingBack);
  // The trainer's streams do not wait for one another: ours does, for all of them.
  for (const gpu::Stream user : users) {
    RETURN_IF_ERROR(Check(driver.event_record(reached_, user), "cuEventRecord"), kGivingBack);
    RETURN_IF_ERROR(Check(driver.stream_wait_event(join_stream_, reached_, 0), "cuStreamWaitEvent"), kGivingBack);
  }
  return handover_->DrainBehind(slot, join_stream_);
}

}  // namespace headrace::client
