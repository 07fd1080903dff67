// Memory of a GPU that several processes have mapped. It comes back when the last of them lets go of it, however that
// is: the driver counts.
#pragma once

#include <memory>

#include "common/gpu/context.h"

namespace headrace::gpu {

// Mapped, for the context's GPU to read and write, until destroyed.
class SharedMemory {
 public:
  // Makes memory on the context's GPU. Errors: Exhausted where it has not so much; Unavailable where it cannot share
  // memory. `context` must outlive this.
  static Result<std::unique_ptr<SharedMemory>> Create(const PrimaryContext* context, uint64_t bytes);
  // Maps what another process has made with as many `bytes`, on the GPU that is the context's here. `fd` is not kept.
  static Result<std::unique_ptr<SharedMemory>> Import(const PrimaryContext* context, int fd, uint64_t bytes);
  // REQUIRES: the GPU does nothing with it in this process.
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  DevicePtr address() const { return address_; }
  int fd() const { return fd_; }  // what others import; -1 where this was imported

 private:
  explicit SharedMemory(const PrimaryContext* context) : context_(*context) {}
  // Rounds up to what is mapped at a time. Errors: Unavailable where the GPU has no such memory.
  Status SetBytes(uint64_t bytes);
  Status Map(MemHandle handle);

  const PrimaryContext& context_;
  MemProperties properties_;
  uint64_t bytes_ = 0;
  DevicePtr address_ = 0;
  bool mapped_ = false;
  int fd_ = -1;
};

}  // namespace headrace::gpu
