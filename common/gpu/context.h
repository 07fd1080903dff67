// The primary context of a GPU: the one that the CUDA runtime, and so every framework in the process, uses.
#pragma once

#include <memory>

#include "common/gpu/driver.h"

namespace headrace::gpu {

// Held from Retain until destroyed. Any thread.
class PrimaryContext {
 public:
  // Makes the context (hundreds of megabytes of GPU memory) if nothing in the process has yet. Errors: InvalidArgument
  // where the process sees no GPU `ordinal`; Exhausted, Unavailable. REQUIRES: `driver` is open.
  static Result<std::unique_ptr<PrimaryContext>> Retain(const Driver* driver, int ordinal);
  ~PrimaryContext();
  PrimaryContext(const PrimaryContext&) = delete;
  PrimaryContext& operator=(const PrimaryContext&) = delete;

  const Driver& driver() const { return *driver_; }
  int ordinal() const { return ordinal_; }
  Device device() const { return device_; }

  // Makes the context the calling thread's, and what it was before again when it goes. Where that fails, the calls in
  // between do, too, and say why.
  class Current {
   public:
    explicit Current(const PrimaryContext& context);
    ~Current();
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;

   private:
    const Driver& driver_;
    const bool pushed_;
  };

 private:
  PrimaryContext(const Driver* driver, int ordinal, Device device, ContextHandle handle)
      : driver_(driver), ordinal_(ordinal), device_(device), handle_(handle) {}

  const Driver* const driver_;
  const int ordinal_;
  const Device device_;
  const ContextHandle handle_;
};

}  // namespace headrace::gpu
