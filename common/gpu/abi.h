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

namespace headrace::gpu {

using Error = int;  // CUresult; 0: success
using Device = int;
using DevicePtr = unsigned long long;  // not a pointer of this process
using ContextHandle = CUctx_st*;
using Stream = CUstream_st*;
using Event = CUevent_st*;

inline constexpr Error kSuccess = 0;
inline constexpr Error kErrorInvalidValue = 1;
inline constexpr Error kErrorOutOfMemory = 2;
inline constexpr Error kErrorNotInitialized = 3;  // also in a process forked from one that uses CUDA
inline constexpr Error kErrorDeinitialized = 4;   // the process ends
inline constexpr Error kErrorDeviceUnavailable = 46;
inline constexpr Error kErrorNoDevice = 100;
inline constexpr Error kErrorInvalidDevice = 101;
inline constexpr Error kErrorInvalidContext = 201;
inline constexpr Error kErrorInvalidHandle = 400;
inline constexpr Error kErrorNotReady = 600;  // of a query: there is still work to be done
inline constexpr Error kErrorIllegalAddress = 700;
inline constexpr Error kErrorHostMemoryAlreadyRegistered = 712;
inline constexpr Error kErrorHostMemoryNotRegistered = 713;
inline constexpr Error kErrorSystemDriverMismatch = 803;
inline constexpr Error kErrorCompatNotSupportedOnDevice = 804;

inline constexpr unsigned kStreamNonBlocking = 1;  // does not wait for the legacy default stream
inline constexpr unsigned kEventBlockingSync = 1;  // cuEventSynchronize sleeps
inline constexpr unsigned kEventDisableTiming = 2;
inline constexpr unsigned kMemHostRegisterPortable = 1;  // for all contexts of this process

// The default streams, which have no handle of their own. DLPack's numbers for them are the same.
inline constexpr std::uintptr_t kStreamLegacy = 1;
inline constexpr std::uintptr_t kStreamPerThread = 2;

}  // namespace headrace::gpu
