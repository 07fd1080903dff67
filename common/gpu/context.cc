#include "common/gpu/context.h"

namespace headrace::gpu {

Result<std::unique_ptr<PrimaryContext>> PrimaryContext::Retain(const Driver* driver, int ordinal) {
  const std::string where = " of GPU " + std::to_string(ordinal);
  Device device = 0;
  RETURN_IF_ERROR(driver->Check(driver->device_get(&device, ordinal), "cuDeviceGet" + where));
  ContextHandle handle = nullptr;
  RETURN_IF_ERROR(
      driver->Check(driver->device_primary_ctx_retain(&handle, device), "cuDevicePrimaryCtxRetain" + where));
  return std::unique_ptr<PrimaryContext>(new PrimaryContext(driver, ordinal, device, handle));
}

// Fails only where the process ends and the driver has let go of everything itself.
PrimaryContext::~PrimaryContext() { driver_->device_primary_ctx_release(device_); }

PrimaryContext::Current::Current(const PrimaryContext& context)
    : driver_(context.driver()), pushed_(driver_.ctx_push_current(context.handle_) == kSuccess) {}

PrimaryContext::Current::~Current() {
  ContextHandle popped = nullptr;
  if (pushed_) driver_.ctx_pop_current(&popped);
}

}  // namespace headrace::gpu
