// What the parts of the stand-in driver share. Seen by fake_cuda*.cc only.
#pragma once

#include <unistd.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/fakes/fake_cuda.h"

// What the driver's handles point to.
struct CUctx_st {  // NOLINT(readability-identifier-naming)
  int device = 0;
  int retained = 0;
};
struct CUstream_st {  // NOLINT(readability-identifier-naming)
  std::deque<std::function<void()>> work;
  bool busy = false;
  bool ending = false;
  std::thread thread;
};
struct CUevent_st {                          // NOLINT(readability-identifier-naming)
  std::shared_ptr<bool> recorded = nullptr;  // true once the stream has come to the last record
};
struct CUfunc_st {  // NOLINT(readability-identifier-naming)
  int kernel = 0;   // of those that fake_cuda_kernels.cc knows
};
struct CUmod_st {  // NOLINT(readability-identifier-naming)
  std::vector<std::unique_ptr<CUfunc_st>> functions;
};

namespace headrace::gpu::fake {

constexpr size_t kPageBytes = 4096;
constexpr int kMostGpus = 8;

struct Allocation {
  size_t bytes;
  ContextHandle context;
  std::unique_ptr<uint8_t[]> storage;
};

// Memory that processes share: a file in memory, which each maps where nobody looks for it.
struct Shared {
  int fd = -1;
  size_t bytes = 0;
  int gpu = 0;  // of the machine, not of the process
  bool exportable = false;
  int holders = 0;  // the handle, and mappings
};
// A reserved range of addresses, and what is mapped there.
struct Range {
  size_t bytes = 0;
  Shared* memory = nullptr;
  uint8_t* storage = nullptr;
  bool accessible = false;
};

// All of the driver. Never destroyed, as the driver is there to the end of the process.
struct Fake {
  std::mutex mutex;
  std::condition_variable changed;
  // Guarded by mutex.
  pid_t initialised_by = 0;
  CUctx_st contexts[kMostGpus];
  std::map<DevicePtr, Allocation> memory;
  std::map<uintptr_t, size_t> registered;
  std::map<MemHandle, Shared*> handles;
  std::map<DevicePtr, Range> ranges;
  std::set<Stream> streams;
  std::map<uintptr_t, Stream> default_streams;  // by their number
  std::set<Event> events;
  std::set<Module> modules;
  bool hold_copies = false;
  bool fail_allocation = false;
  FakeCudaState counts{};
  std::string refusal;
};
Fake& TheFake();

// The GPUs that this process sees, as the machine numbers them.
std::vector<int> VisibleGpus();

// REQUIRES: the mutex is held, as all below.
Error Refuse(Error error, const std::string& why);
Error CheckReady(const char* call, bool needs_context = true);
bool IsRegistered(const void* memory, size_t bytes);
// The stream of a handle, default streams included; null if there is none.
Stream Find(Stream handle);
void Enqueue(Stream stream, std::function<void()> work);
// The bytes behind a device address; null if not all of them are one allocation's.
uint8_t* Storage(DevicePtr address, size_t bytes);
// The bytes behind an address of a range that is mapped and may be accessed; null if not all are.
uint8_t* MappedStorage(DevicePtr address, size_t bytes);
// What is written to a device takes this long in its middle, so that who looks sees it torn.
void PauseInTheMiddle();

}  // namespace headrace::gpu::fake
