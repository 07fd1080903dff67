// A stand-in for the CUDA driver, libcuda.so.1, on machines that have none: see fake_cuda.cc. Beside the driver's own
// functions, which tests call through gpu::Driver, it has these.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/gpu/abi.h"

extern "C" {

struct FakeCudaState {
  int64_t contexts;  // primary contexts that are retained
  int64_t streams;   // created and not destroyed; events, registrations and bytes alike
  int64_t events;
  int64_t registrations;
  int64_t device_bytes;
  int64_t copies_to_device;
  int64_t pageable_copies;  // of these, from memory that was not registered: the real driver stops the host for them
  int64_t value_waits;      // waits of streams for a value in host memory
  int64_t refusals;         // calls that were answered with an error
  int64_t modules;          // loaded and not unloaded
  int64_t launches;         // of kernels
};

// Whether a device could read these bytes of the host.
int FakeCudaIsRegistered(const void* memory, size_t bytes);
void FakeCudaGetState(FakeCudaState* state);
// The last call that was refused, and why.
const char* FakeCudaLastRefusal(void);
// While held, copies to a device do not begin, and what waits for them waits.
void FakeCudaHoldCopies(int hold);
// The next cuMemAlloc or cuMemCreate fails for want of memory.
void FakeCudaFailNextAllocation(void);
// As the real driver's: `function` runs in the stream's order, and holds the stream until it returns.
headrace::gpu::Error cuLaunchHostFunc(headrace::gpu::Stream stream, void (*function)(void*),
                                      void* user);  // NOLINT(readability-identifier-naming): the driver's name
}
