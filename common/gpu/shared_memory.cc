#include "common/gpu/shared_memory.h"

#include <unistd.h>

namespace headrace::gpu {

Result<std::unique_ptr<SharedMemory>> SharedMemory::Create(const PrimaryContext* context, uint64_t bytes) {
  const Driver& driver = context->driver();
  const PrimaryContext::Current current(*context);
  std::unique_ptr<SharedMemory> memory(new SharedMemory(context));
  RETURN_IF_ERROR(memory->SetBytes(bytes));
  MemHandle handle = 0;
  RETURN_IF_ERROR(driver.Check(driver.mem_create(&handle, memory->bytes_, &memory->properties_, 0),
                               "cuMemCreate of " + std::to_string(memory->bytes_) + " bytes"));
  Status status =
      driver.Check(driver.mem_export(&memory->fd_, handle, kMemAsDescriptor, 0), "cuMemExportToShareableHandle");
  if (status.ok()) status = memory->Map(handle);
  // The mapping keeps the memory.
  driver.mem_release(handle);
  RETURN_IF_ERROR(status);
  return memory;
}

Result<std::unique_ptr<SharedMemory>> SharedMemory::Import(const PrimaryContext* context, int fd, uint64_t bytes) {
  const Driver& driver = context->driver();
  const PrimaryContext::Current current(*context);
  std::unique_ptr<SharedMemory> memory(new SharedMemory(context));
  RETURN_IF_ERROR(memory->SetBytes(bytes));
  MemHandle handle = 0;
  // The descriptor itself is passed in the place of a pointer.
  auto* const descriptor = reinterpret_cast<void*>(static_cast<intptr_t>(fd));
  RETURN_IF_ERROR(
      driver.Check(driver.mem_import(&handle, descriptor, kMemAsDescriptor), "cuMemImportFromShareableHandle"));
  const Status status = memory->Map(handle);
  driver.mem_release(handle);
  RETURN_IF_ERROR(status);
  return memory;
}

Status SharedMemory::SetBytes(uint64_t bytes) {
  const Driver& driver = context_.driver();
  for (const int attribute : {kAttributeMemMapping, kAttributeMemAsDescriptor}) {
    int supported = 0;
    RETURN_IF_ERROR(driver.Check(driver.device_get_attribute(&supported, attribute, context_.device()),
                                 "cuDeviceGetAttribute " + std::to_string(attribute)));
    if (supported == 0) {
      return driver.Check(kErrorNotSupported, "GPU " + std::to_string(context_.ordinal()) +
                                                  " cannot share memory between processes: attribute " +
                                                  std::to_string(attribute) + " is 0");
    }
  }
  properties_.handle_types = kMemAsDescriptor;
  properties_.location.device = context_.device();
  size_t unit = 0;
  RETURN_IF_ERROR(driver.Check(driver.mem_get_allocation_granularity(&unit, &properties_, kGranularityRecommended),
                               "cuMemGetAllocationGranularity"));
  bytes_ = (bytes + unit - 1) / unit * unit;
  return {};
}

Status SharedMemory::Map(MemHandle handle) {
  const Driver& driver = context_.driver();
  RETURN_IF_ERROR(driver.Check(driver.mem_address_reserve(&address_, bytes_, 0, 0, 0), "cuMemAddressReserve"));
  RETURN_IF_ERROR(
      driver.Check(driver.mem_map(address_, bytes_, 0, handle, 0), "cuMemMap of " + std::to_string(bytes_) + " bytes"));
  mapped_ = true;
  const MemAccess access{properties_.location, kMemReadWrite};
  return driver.Check(driver.mem_set_access(address_, bytes_, &access, 1), "cuMemSetAccess");
}

// Errors here are those of a process that ends, whose driver has let go of everything itself.
SharedMemory::~SharedMemory() {
  const Driver& driver = context_.driver();
  const PrimaryContext::Current current(context_);
  if (mapped_) driver.mem_unmap(address_, bytes_);
  if (address_ != 0) driver.mem_address_free(address_, bytes_);
  if (fd_ >= 0) close(fd_);
}

}  // namespace headrace::gpu
