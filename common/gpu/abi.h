// The part of the CUDA driver's binary interface that we use, so that the client builds without the CUDA Toolkit.
//
// Types and values are those of "CUDA Driver API" (docs.nvidia.com/cuda/cuda-driver-api), unchanged since CUDA 11.
// sidecar/device/abi_check.cc holds them against cuda.h wherever the toolkit is there.
#pragma once

#include <cstdint>

// The driver's own names for what its handles point to, so that both headers can be seen at a time.
struct CUctx_st;     // NOLINT(readability-identifier-naming)
struct CUstream_st;  // NOLINT(readability-identifier-naming)
struct CUevent_st;   // NOLINT(readability-identifier-naming)
struct CUmod_st;     // NOLINT(readability-identifier-naming)
struct CUfunc_st;    // NOLINT(readability-identifier-naming)

namespace headrace::gpu {

using Error = int;  // CUresult; 0: success
using Device = int;
using DevicePtr = unsigned long long;  // not a pointer of this process
using ContextHandle = CUctx_st*;
using Stream = CUstream_st*;
using Event = CUevent_st*;
using Module = CUmod_st*;  // code, loaded into a context
using Function = CUfunc_st*;
using MemHandle = unsigned long long;  // of memory that is mapped by hand

struct Uuid {
  char bytes[16];
};
struct MemLocation {
  int type = 1;  // CU_MEM_LOCATION_TYPE_DEVICE
  Device device = 0;
};
struct MemProperties {
  int type = 1;          // CU_MEM_ALLOCATION_TYPE_PINNED: it stays where it is
  int handle_types = 0;  // it may be exported as
  MemLocation location;
  void* windows = nullptr;
  unsigned char flags[8] = {};
};
struct MemAccess {
  MemLocation location;  // the GPU that accesses
  int flags = 0;
};

inline constexpr Error kSuccess = 0;
inline constexpr Error kErrorInvalidValue = 1;
inline constexpr Error kErrorOutOfMemory = 2;
inline constexpr Error kErrorNotInitialized = 3;  // also in a process forked from one that uses CUDA
inline constexpr Error kErrorDeinitialized = 4;   // the process ends
inline constexpr Error kErrorDeviceUnavailable = 46;
inline constexpr Error kErrorNoDevice = 100;
inline constexpr Error kErrorInvalidDevice = 101;
inline constexpr Error kErrorInvalidImage = 200;  // what is to be loaded is no code
inline constexpr Error kErrorInvalidContext = 201;
inline constexpr Error kErrorNoBinaryForGpu = 209;
inline constexpr Error kErrorUnsupportedPtxVersion = 222;  // the code is for newer drivers
inline constexpr Error kErrorInvalidHandle = 400;
inline constexpr Error kErrorNotFound = 500;
inline constexpr Error kErrorNotReady = 600;  // of a query: there is still work to be done
inline constexpr Error kErrorIllegalAddress = 700;
inline constexpr Error kErrorLaunchOutOfResources = 701;
inline constexpr Error kErrorHostMemoryAlreadyRegistered = 712;
inline constexpr Error kErrorHostMemoryNotRegistered = 713;
inline constexpr Error kErrorMisalignedAddress = 716;
inline constexpr Error kErrorNotPermitted = 800;
inline constexpr Error kErrorNotSupported = 801;
inline constexpr Error kErrorSystemDriverMismatch = 803;
inline constexpr Error kErrorCompatNotSupportedOnDevice = 804;

inline constexpr unsigned kStreamNonBlocking = 1;  // does not wait for the legacy default stream
inline constexpr unsigned kEventBlockingSync = 1;  // cuEventSynchronize sleeps
inline constexpr unsigned kEventDisableTiming = 2;
inline constexpr unsigned kMemHostRegisterPortable = 1;   // for all contexts of this process
inline constexpr unsigned kMemHostRegisterDeviceMap = 2;  // with an address on the GPU

inline constexpr int kAttributeMemMapping = 102;  // CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED
inline constexpr int kAttributeMemAsDescriptor =
    103;                                    // CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED
inline constexpr int kMemAsDescriptor = 1;  // CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
inline constexpr int kMemReadWrite = 3;     // CU_MEM_ACCESS_FLAGS_PROT_READWRITE
inline constexpr unsigned kGranularityRecommended = 1;
inline constexpr unsigned kWaitValueGeq = 0;       // until int32_t(*address - value) >= 0
inline constexpr unsigned kWriteValueDefault = 0;  // after all that the stream did before, for all who look

// The default streams, which have no handle of their own. DLPack's numbers for them are the same.
inline constexpr std::uintptr_t kStreamLegacy = 1;
inline constexpr std::uintptr_t kStreamPerThread = 2;

}  // namespace headrace::gpu
