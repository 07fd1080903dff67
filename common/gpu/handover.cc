#include "common/gpu/handover.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>

namespace headrace::gpu {
namespace {

constexpr uint64_t kPageBytes = 4096;

}  // namespace

// A cache line of its own, since different streams write different slots.
struct Handover::Slot {
  alignas(64) std::atomic<uint32_t> filled;
  std::atomic<uint32_t> drained;
};

Result<std::unique_ptr<Handover>> Handover::Create(const PrimaryContext* context, uint64_t slots) {
  std::unique_ptr<Handover> handover(new Handover(context, slots));
  handover->fd_ = memfd_create("headrace-handover", MFD_CLOEXEC);
  if (handover->fd_ < 0) return ErrnoStatus(errno, "making shared memory for a device ring's counters");
  const uint64_t bytes = (slots * sizeof(Slot) + kPageBytes - 1) / kPageBytes * kPageBytes;
  if (ftruncate(handover->fd_, static_cast<off_t>(bytes)) != 0) {
    return ErrnoStatus(errno, "shared memory of " + std::to_string(bytes) + " bytes for a device ring's counters");
  }
  RETURN_IF_ERROR(handover->Map(handover->fd_));
  return handover;
}

Result<std::unique_ptr<Handover>> Handover::Import(const PrimaryContext* context, int fd, uint64_t slots) {
  std::unique_ptr<Handover> handover(new Handover(context, slots));
  RETURN_IF_ERROR(handover->Map(fd));
  return handover;
}

Status Handover::Map(int fd) {
  struct stat file {};
  if (fstat(fd, &file) != 0) return ErrnoStatus(errno, "reading the size of a device ring's counters");
  bytes_ = static_cast<uint64_t>(file.st_size);
  if (!S_ISREG(file.st_mode) || bytes_ < slots_ * sizeof(Slot) || bytes_ % kPageBytes != 0) {
    return Corrupt("a device ring's counters have " + std::to_string(bytes_) + " bytes, its " + std::to_string(slots_) +
                   " slots need " + std::to_string(slots_ * sizeof(Slot)));
  }
  void* const memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return ErrnoStatus(errno, "mapping a device ring's counters");
  memory_ = memory;
  const Driver& driver = context_.driver();
  const PrimaryContext::Current current(context_);
  RETURN_IF_ERROR(
      driver.Check(driver.mem_host_register(memory_, bytes_, kMemHostRegisterPortable | kMemHostRegisterDeviceMap),
                   "cuMemHostRegister of a device ring's counters"));
  registered_ = true;
  return driver.Check(driver.mem_host_get_device_pointer(&address_, memory_, 0), "cuMemHostGetDevicePointer");
}

// Errors here are those of a process that ends, whose driver has let go of everything itself.
Handover::~Handover() {
  const PrimaryContext::Current current(context_);
  if (registered_) context_.driver().mem_host_unregister(memory_);
  if (memory_ != nullptr) munmap(memory_, bytes_);
  if (fd_ >= 0) close(fd_);
}

Handover::Slot& Handover::At(uint64_t slot) const { return static_cast<Slot*>(memory_)[slot]; }

DevicePtr Handover::DrainedAddress(uint64_t slot) const {
  return address_ + slot * sizeof(Slot) + offsetof(Slot, drained);
}

void Handover::MarkFilled(uint64_t slot) { At(slot).filled.fetch_add(1, std::memory_order_release); }

bool Handover::IsDrained(uint64_t slot) const {
  const uint32_t filled = At(slot).filled.load(std::memory_order_acquire);
  return static_cast<int32_t>(At(slot).drained.load(std::memory_order_acquire) - filled) >= 0;
}

Status Handover::AwaitDrained(uint64_t slot, Stream stream) {
  const Driver& driver = context_.driver();
  const uint32_t filled = At(slot).filled.load(std::memory_order_acquire);
  return driver.Check(driver.stream_wait_value32(stream, DrainedAddress(slot), filled, kWaitValueGeq),
                      "cuStreamWaitValue32");
}

void Handover::Drain(uint64_t slot) {
  At(slot).drained.store(At(slot).filled.load(std::memory_order_acquire), std::memory_order_release);
}

Status Handover::DrainBehind(uint64_t slot, Stream stream) {
  const Driver& driver = context_.driver();
  const uint32_t filled = At(slot).filled.load(std::memory_order_acquire);
  return driver.Check(driver.stream_write_value32(stream, DrainedAddress(slot), filled, kWriteValueDefault),
                      "cuStreamWriteValue32");
}

}  // namespace headrace::gpu
