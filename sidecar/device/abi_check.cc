// Holds common/gpu/abi.h and common/gpu/driver.h, which are written by hand, against the toolkit's header. Only
// compiled.
#include <cuda.h>

#include <cstddef>
#include <type_traits>

#include "common/gpu/driver.h"

namespace headrace::device {
namespace {

// Enumerations are passed as the integers they are; the driver's types differ from ours in name only.
template <typename Ours, typename Theirs>
constexpr bool SameWord() {
  if (std::is_pointer_v<Ours> != std::is_pointer_v<Theirs>) return false;
  // NOLINTNEXTLINE(bugprone-sizeof-expression): handles are pointers, and it is these that are passed
  return sizeof(Ours) == sizeof(Theirs) && std::is_scalar_v<Ours> && std::is_scalar_v<Theirs>;
}

template <typename Ours, typename... OurParameters, typename Theirs, typename... TheirParameters>
constexpr bool SameCall(Ours (*)(OurParameters...), Theirs (*)(TheirParameters...)) {
  if constexpr (sizeof...(OurParameters) != sizeof...(TheirParameters)) {
    return false;
  } else {
    return SameWord<Ours, Theirs>() && (SameWord<OurParameters, TheirParameters>() && ...);
  }
}

static_assert(std::is_same_v<gpu::DevicePtr, CUdeviceptr> && std::is_same_v<gpu::Device, CUdevice>);
static_assert(std::is_same_v<gpu::ContextHandle, CUcontext> && std::is_same_v<gpu::Stream, CUstream> &&
              std::is_same_v<gpu::Event, CUevent>);
static_assert(std::is_same_v<gpu::Module, CUmodule> && std::is_same_v<gpu::Function, CUfunction>);
static_assert(std::is_same_v<gpu::MemHandle, CUmemGenericAllocationHandle> && sizeof(gpu::Uuid) == sizeof(CUuuid));
static_assert(sizeof(gpu::MemLocation) == sizeof(CUmemLocation) &&
              offsetof(gpu::MemLocation, device) == offsetof(CUmemLocation, id) &&
              gpu::MemLocation{}.type == CU_MEM_LOCATION_TYPE_DEVICE);
static_assert(sizeof(gpu::MemProperties) == sizeof(CUmemAllocationProp) &&
              offsetof(gpu::MemProperties, handle_types) == offsetof(CUmemAllocationProp, requestedHandleTypes) &&
              offsetof(gpu::MemProperties, location) == offsetof(CUmemAllocationProp, location) &&
              offsetof(gpu::MemProperties, flags) == offsetof(CUmemAllocationProp, allocFlags) &&
              gpu::MemProperties{}.type == CU_MEM_ALLOCATION_TYPE_PINNED);
static_assert(sizeof(gpu::MemAccess) == sizeof(CUmemAccessDesc) &&
              offsetof(gpu::MemAccess, flags) == offsetof(CUmemAccessDesc, flags));
static_assert(gpu::kSuccess == CUDA_SUCCESS && gpu::kErrorInvalidValue == CUDA_ERROR_INVALID_VALUE);
static_assert(gpu::kErrorOutOfMemory == CUDA_ERROR_OUT_OF_MEMORY);
static_assert(gpu::kErrorNotInitialized == CUDA_ERROR_NOT_INITIALIZED);
static_assert(gpu::kErrorDeinitialized == CUDA_ERROR_DEINITIALIZED);
static_assert(gpu::kErrorDeviceUnavailable == CUDA_ERROR_DEVICE_UNAVAILABLE);
static_assert(gpu::kErrorNoDevice == CUDA_ERROR_NO_DEVICE && gpu::kErrorInvalidDevice == CUDA_ERROR_INVALID_DEVICE);
static_assert(gpu::kErrorInvalidImage == CUDA_ERROR_INVALID_IMAGE);
static_assert(gpu::kErrorInvalidContext == CUDA_ERROR_INVALID_CONTEXT);
static_assert(gpu::kErrorNoBinaryForGpu == CUDA_ERROR_NO_BINARY_FOR_GPU);
static_assert(gpu::kErrorUnsupportedPtxVersion == CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
static_assert(gpu::kErrorInvalidHandle == CUDA_ERROR_INVALID_HANDLE);
static_assert(gpu::kErrorNotFound == CUDA_ERROR_NOT_FOUND);
static_assert(gpu::kErrorNotReady == CUDA_ERROR_NOT_READY);
static_assert(gpu::kErrorIllegalAddress == CUDA_ERROR_ILLEGAL_ADDRESS);
static_assert(gpu::kErrorLaunchOutOfResources == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
static_assert(gpu::kErrorMisalignedAddress == CUDA_ERROR_MISALIGNED_ADDRESS);
static_assert(gpu::kErrorHostMemoryAlreadyRegistered == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
static_assert(gpu::kErrorHostMemoryNotRegistered == CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
static_assert(gpu::kErrorNotPermitted == CUDA_ERROR_NOT_PERMITTED &&
              gpu::kErrorNotSupported == CUDA_ERROR_NOT_SUPPORTED);
static_assert(gpu::kErrorSystemDriverMismatch == CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
static_assert(gpu::kErrorCompatNotSupportedOnDevice == CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE);
static_assert(gpu::kStreamNonBlocking == CU_STREAM_NON_BLOCKING);
static_assert(gpu::kEventBlockingSync == CU_EVENT_BLOCKING_SYNC && gpu::kEventDisableTiming == CU_EVENT_DISABLE_TIMING);
static_assert(gpu::kMemHostRegisterPortable == CU_MEMHOSTREGISTER_PORTABLE);
static_assert(gpu::kMemHostRegisterDeviceMap == CU_MEMHOSTREGISTER_DEVICEMAP);
static_assert(gpu::kAttributeMemMapping == CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
static_assert(gpu::kAttributeMemAsDescriptor == CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
static_assert(gpu::kMemAsDescriptor == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
static_assert(gpu::kMemReadWrite == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
static_assert(gpu::kGranularityRecommended == CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
static_assert(gpu::kWaitValueGeq == CU_STREAM_WAIT_VALUE_GEQ);
static_assert(gpu::kWriteValueDefault == CU_STREAM_WRITE_VALUE_DEFAULT);

constexpr gpu::Driver kOurs{};
// cuda.h renames a function to the version that the driver exports, so these are the names that driver.cc looks up.
static_assert(SameCall(kOurs.init, decltype(&cuInit){}));
static_assert(SameCall(kOurs.driver_get_version, decltype(&cuDriverGetVersion){}));
static_assert(SameCall(kOurs.get_error_name, decltype(&cuGetErrorName){}));
static_assert(SameCall(kOurs.get_error_string, decltype(&cuGetErrorString){}));
static_assert(SameCall(kOurs.device_get_count, decltype(&cuDeviceGetCount){}));
static_assert(SameCall(kOurs.device_get, decltype(&cuDeviceGet){}));
static_assert(SameCall(kOurs.device_get_attribute, decltype(&cuDeviceGetAttribute){}));
static_assert(SameCall(kOurs.device_get_uuid, decltype(&cuDeviceGetUuid_v2){}));
static_assert(SameCall(kOurs.device_primary_ctx_retain, decltype(&cuDevicePrimaryCtxRetain){}));
static_assert(SameCall(kOurs.device_primary_ctx_release, decltype(&cuDevicePrimaryCtxRelease_v2){}));
static_assert(SameCall(kOurs.ctx_push_current, decltype(&cuCtxPushCurrent_v2){}));
static_assert(SameCall(kOurs.ctx_pop_current, decltype(&cuCtxPopCurrent_v2){}));
static_assert(SameCall(kOurs.ctx_synchronize, decltype(&cuCtxSynchronize){}));
static_assert(SameCall(kOurs.mem_host_register, decltype(&cuMemHostRegister_v2){}));
static_assert(SameCall(kOurs.mem_host_unregister, decltype(&cuMemHostUnregister){}));
static_assert(SameCall(kOurs.mem_host_get_device_pointer, decltype(&cuMemHostGetDevicePointer_v2){}));
static_assert(SameCall(kOurs.mem_alloc, decltype(&cuMemAlloc_v2){}));
static_assert(SameCall(kOurs.mem_free, decltype(&cuMemFree_v2){}));
static_assert(SameCall(kOurs.mem_get_allocation_granularity, decltype(&cuMemGetAllocationGranularity){}));
static_assert(SameCall(kOurs.mem_create, decltype(&cuMemCreate){}));
static_assert(SameCall(kOurs.mem_release, decltype(&cuMemRelease){}));
static_assert(SameCall(kOurs.mem_export, decltype(&cuMemExportToShareableHandle){}));
static_assert(SameCall(kOurs.mem_import, decltype(&cuMemImportFromShareableHandle){}));
static_assert(SameCall(kOurs.mem_address_reserve, decltype(&cuMemAddressReserve){}));
static_assert(SameCall(kOurs.mem_address_free, decltype(&cuMemAddressFree){}));
static_assert(SameCall(kOurs.mem_map, decltype(&cuMemMap){}));
static_assert(SameCall(kOurs.mem_unmap, decltype(&cuMemUnmap){}));
static_assert(SameCall(kOurs.mem_set_access, decltype(&cuMemSetAccess){}));
static_assert(SameCall(kOurs.memcpy_htod_async, decltype(&cuMemcpyHtoDAsync_v2){}));
static_assert(SameCall(kOurs.memcpy_dtoh_async, decltype(&cuMemcpyDtoHAsync_v2){}));
static_assert(SameCall(kOurs.stream_create, decltype(&cuStreamCreate){}));
static_assert(SameCall(kOurs.stream_destroy, decltype(&cuStreamDestroy_v2){}));
static_assert(SameCall(kOurs.stream_synchronize, decltype(&cuStreamSynchronize){}));
static_assert(SameCall(kOurs.stream_query, decltype(&cuStreamQuery){}));
static_assert(SameCall(kOurs.stream_wait_event, decltype(&cuStreamWaitEvent){}));
static_assert(SameCall(kOurs.stream_wait_value32, decltype(&cuStreamWaitValue32_v2){}));
static_assert(SameCall(kOurs.stream_write_value32, decltype(&cuStreamWriteValue32_v2){}));
static_assert(SameCall(kOurs.event_create, decltype(&cuEventCreate){}));
static_assert(SameCall(kOurs.event_destroy, decltype(&cuEventDestroy_v2){}));
static_assert(SameCall(kOurs.event_record, decltype(&cuEventRecord){}));
static_assert(SameCall(kOurs.event_synchronize, decltype(&cuEventSynchronize){}));
static_assert(SameCall(kOurs.module_load_data, decltype(&cuModuleLoadData){}));
static_assert(SameCall(kOurs.module_unload, decltype(&cuModuleUnload){}));
static_assert(SameCall(kOurs.module_get_function, decltype(&cuModuleGetFunction){}));
static_assert(SameCall(kOurs.launch_kernel, decltype(&cuLaunchKernel){}));

}  // namespace
}  // namespace headrace::device
