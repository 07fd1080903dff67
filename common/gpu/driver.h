// The CUDA driver (libcuda.so.1), opened by those who ask for it: what links this starts on machines without one.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/status.h"
#include "common/gpu/abi.h"

namespace headrace::gpu {

// Names another file than libcuda.so.1, for tests against a stand-in.
inline constexpr char kLibraryEnv[] = "HEADRACE_LIBCUDA";
inline constexpr int kOldestDriver = 12000;  // CUDA 12.0, as cuDriverGetVersion codes it

// The driver's functions, by the names it exports. Constant once open; any thread.
struct Driver {
  // Opens the driver and initialises it at the first call that works; it stays open as long as the process. Makes no
  // context. Errors: NotFound without a driver or a GPU; Unavailable where the driver is too old or refuses, or in a
  // process forked from one that had opened it.
  static Result<const Driver*> Open();

  // OK for kSuccess; else an error that says `call`, CUDA's name of it and what to do.
  Status Check(Error error, const std::string& call) const;

  // Locks a ring's memory, and makes it known to all contexts of the process. To be undone by mem_host_unregister.
  // Errors: of Check; Unavailable, with the remedy, where the ring's file is on a disk: the kernel locks shared pages
  // of files in memory only.
  Status RegisterRing(void* ring, size_t bytes) const;

  Error (*init)(unsigned flags);
  Error (*driver_get_version)(int* version);
  Error (*get_error_name)(Error error, const char** name);
  Error (*get_error_string)(Error error, const char** text);
  Error (*device_get_count)(int* count);
  Error (*device_get)(Device* device, int ordinal);
  Error (*device_get_attribute)(int* value, int attribute, Device device);
  Error (*device_get_uuid)(Uuid* uuid, Device device);
  Error (*device_primary_ctx_retain)(ContextHandle* context, Device device);
  Error (*device_primary_ctx_release)(Device device);
  Error (*ctx_push_current)(ContextHandle context);
  Error (*ctx_pop_current)(ContextHandle* context);
  Error (*ctx_synchronize)();
  Error (*mem_host_register)(void* memory, size_t bytes, unsigned flags);
  Error (*mem_host_unregister)(void* memory);
  Error (*mem_host_get_device_pointer)(DevicePtr* address, void* memory, unsigned flags);
  Error (*mem_alloc)(DevicePtr* memory, size_t bytes);
  Error (*mem_free)(DevicePtr memory);
  Error (*mem_get_allocation_granularity)(size_t* bytes, const MemProperties* properties, unsigned option);
  Error (*mem_create)(MemHandle* handle, size_t bytes, const MemProperties* properties, unsigned long long flags);
  Error (*mem_release)(MemHandle handle);
  Error (*mem_export)(void* to, MemHandle handle, int type, unsigned long long flags);
  Error (*mem_import)(MemHandle* handle, void* from, int type);
  Error (*mem_address_reserve)(DevicePtr* address, size_t bytes, size_t alignment, DevicePtr hint,
                               unsigned long long flags);
  Error (*mem_address_free)(DevicePtr address, size_t bytes);
  Error (*mem_map)(DevicePtr address, size_t bytes, size_t offset, MemHandle handle, unsigned long long flags);
  Error (*mem_unmap)(DevicePtr address, size_t bytes);
  Error (*mem_set_access)(DevicePtr address, size_t bytes, const MemAccess* access, size_t count);
  Error (*memcpy_htod_async)(DevicePtr to, const void* from, size_t bytes, Stream stream);
  Error (*memcpy_dtoh_async)(void* to, DevicePtr from, size_t bytes, Stream stream);
  Error (*stream_create)(Stream* stream, unsigned flags);
  Error (*stream_destroy)(Stream stream);
  Error (*stream_synchronize)(Stream stream);
  Error (*stream_query)(Stream stream);
  Error (*stream_wait_event)(Stream stream, Event event, unsigned flags);
  Error (*stream_wait_value32)(Stream stream, DevicePtr address, uint32_t value, unsigned flags);
  Error (*stream_write_value32)(Stream stream, DevicePtr address, uint32_t value, unsigned flags);
  Error (*event_create)(Event* event, unsigned flags);
  Error (*event_destroy)(Event event);
  Error (*event_record)(Event event, Stream stream);
  Error (*event_synchronize)(Event event);
  Error (*module_load_data)(Module* module, const void* code);
  Error (*module_unload)(Module module);
  Error (*module_get_function)(Function* function, Module module, const char* name);
  Error (*launch_kernel)(Function function, unsigned blocks_x, unsigned blocks_y, unsigned blocks_z, unsigned threads_x,
                         unsigned threads_y, unsigned threads_z, unsigned shared_bytes, Stream stream, void** arguments,
                         void** extra);
};

// The number of GPUs that this process sees, 1 at least. Errors: as Driver::Open's.
Result<int> CountGpus();

// What names GPU `ordinal` to all processes, "GPU-" and 32 digits in groups: each process may count them differently.
// Errors: as Driver::Open's; InvalidArgument where the process sees no such GPU.
Result<std::string> GpuUuid(int ordinal);

}  // namespace headrace::gpu
