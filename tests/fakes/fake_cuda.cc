// A stand-in for what cannot be had here: libcuda.so.1 and a GPU behind it. It shows that our calls are ones that the
// driver takes, in an order that keeps batches whole. It shows nothing of speed, nor that a real GPU does the same.
//
// Each stream is a thread that does its work in order; an event waits for what was recorded last, as the driver's. A
// device address is none of this process: what touches it on the CPU crashes, and copies find the bytes behind it. It
// refuses what the real driver would: calls without cuInit, without a context or in a forked process, memory that is
// not the device's, or freed, or not mapped, ranges registered twice or not at all, or of a disk's file, handles that
// were destroyed.
// fake_cuda_memory.cc has the memory that processes share, fake_cuda_kernels.cc the kernels.
//
// $FAKE_CUDA_GPUS: how many there are (2). $FAKE_CUDA_VISIBLE: which of them this process sees, in its order ("1,0"),
// as CUDA_VISIBLE_DEVICES. $FAKE_CUDA_VERSION: what cuDriverGetVersion says (13000). $FAKE_CUDA_COPY_US: how long a
// copy to a device, or a kernel, takes in its middle (0).
#include "tests/fakes/fake_cuda.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "tests/fakes/fake_cuda_state.h"
#include "tests/fakes/host_pages.h"

namespace headrace::gpu::fake {

Fake& TheFake() {
  static Fake* const the_one = new Fake;
  return *the_one;
}

namespace {

thread_local std::vector<ContextHandle> current;

int Number(const char* variable, int otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

}  // namespace

std::vector<int> VisibleGpus() {
  std::vector<int> gpus;
  const char* visible = std::getenv("FAKE_CUDA_VISIBLE");
  if (visible == nullptr) {
    for (int gpu = 0; gpu < std::min(Number("FAKE_CUDA_GPUS", 2), kMostGpus); ++gpu) gpus.push_back(gpu);
    return gpus;
  }
  for (; *visible != '\0'; visible += *visible == ',' ? 1 : 0) {
    char* end = nullptr;
    gpus.push_back(static_cast<int>(std::strtol(visible, &end, 10)));
    visible = end;
  }
  return gpus;
}

Error Refuse(Error error, const std::string& why) {
  TheFake().counts.refusals += 1;
  TheFake().refusal = why;
  return error;
}

Error CheckReady(const char* call, bool needs_context) {
  if (TheFake().initialised_by == 0) return Refuse(kErrorNotInitialized, std::string(call) + " before cuInit");
  if (TheFake().initialised_by != getpid()) return kErrorNotInitialized;
  const bool has_context = !current.empty() && current.back()->retained > 0;
  if (needs_context && !has_context) return Refuse(kErrorInvalidContext, std::string(call) + " without a context");
  return kSuccess;
}

bool IsRegistered(const void* memory, size_t bytes) {
  const auto address = reinterpret_cast<uintptr_t>(memory);
  auto found = TheFake().registered.upper_bound(address);
  if (found == TheFake().registered.begin()) return false;
  --found;
  return address + bytes <= found->first + found->second;
}

namespace {

int GpuCount() { return static_cast<int>(VisibleGpus().size()); }

}  // namespace

uint8_t* Storage(DevicePtr address, size_t bytes) {
  if (uint8_t* const mapped = MappedStorage(address, bytes)) return mapped;
  auto found = TheFake().memory.upper_bound(address);
  if (found == TheFake().memory.begin()) return nullptr;
  --found;
  const uint64_t offset = address - found->first;
  if (offset > found->second.bytes || bytes > found->second.bytes - offset) return nullptr;
  return found->second.storage.get() + offset;
}

void PauseInTheMiddle() {
  if (const int pause = Number("FAKE_CUDA_COPY_US", 0); pause > 0) usleep(static_cast<useconds_t>(pause));
}

namespace {

void RunStream(Stream stream) {
  std::unique_lock lock(TheFake().mutex);
  while (true) {
    TheFake().changed.wait(lock, [&] { return stream->ending || !stream->work.empty(); });
    if (stream->work.empty()) return;
    const std::function<void()> work = std::move(stream->work.front());
    stream->work.pop_front();
    stream->busy = true;
    lock.unlock();
    work();
    lock.lock();
    stream->busy = false;
    TheFake().changed.notify_all();
  }
}

Stream NewStream() {
  auto* const stream = new CUstream_st;
  stream->thread = std::thread(RunStream, stream);
  return stream;
}

}  // namespace

Stream Find(Stream handle) {
  const auto number = reinterpret_cast<uintptr_t>(handle);
  if (number <= kStreamPerThread) {
    Stream& stream = TheFake().default_streams[number == 0 ? kStreamLegacy : number];
    if (stream == nullptr) stream = NewStream();
    return stream;
  }
  return TheFake().streams.count(handle) == 0 ? nullptr : handle;
}

void Enqueue(Stream stream, std::function<void()> work) {
  stream->work.push_back(std::move(work));
  TheFake().changed.notify_all();
}

namespace {

void AwaitIdle(std::unique_lock<std::mutex>& lock, Stream stream) {
  TheFake().changed.wait(lock, [&] { return stream->work.empty() && !stream->busy; });
}

// Copies when the stream comes to it, whichever way: `device` is looked at again then.
void EnqueueCopy(Stream stream, bool to_device, DevicePtr device, uintptr_t host, size_t bytes) {
  Enqueue(stream, [=] {
    uint8_t* storage = nullptr;
    {
      std::unique_lock lock(TheFake().mutex);
      if (to_device) TheFake().changed.wait(lock, [] { return !TheFake().hold_copies; });
      storage = Storage(device, bytes);
      if (storage == nullptr) {
        Refuse(kErrorIllegalAddress, "a copy found its device memory freed or unmapped");
        return;
      }
    }
    if (to_device) {
      // In two halves: who looks in between sees a torn batch.
      const size_t half = bytes / 2;
      std::memcpy(storage, reinterpret_cast<void*>(host), half);
      PauseInTheMiddle();
      std::memcpy(storage + half, reinterpret_cast<uint8_t*>(host) + half, bytes - half);
    } else {
      std::memcpy(reinterpret_cast<void*>(host), storage, bytes);
    }
  });
}

}  // namespace
}  // namespace headrace::gpu::fake

using namespace headrace::gpu;        // NOLINT(google-build-using-namespace): the driver's types, all over this file
using namespace headrace::gpu::fake;  // NOLINT(google-build-using-namespace)

// NOLINTBEGIN(readability-identifier-naming): the driver's names
extern "C" {

Error cuInit(unsigned flags) {
  const std::lock_guard lock(TheFake().mutex);
  if (flags != 0) return Refuse(kErrorInvalidValue, "cuInit with flags");
  if (TheFake().initialised_by != 0 && TheFake().initialised_by != getpid()) return kErrorNotInitialized;
  if (GpuCount() == 0) return kErrorNoDevice;
  TheFake().initialised_by = getpid();
  return kSuccess;
}

Error cuDriverGetVersion(int* version) {
  *version = Number("FAKE_CUDA_VERSION", 13000);
  return kSuccess;
}

Error cuGetErrorName(Error error, const char** name) {
  switch (error) {
    case kErrorInvalidValue: *name = "CUDA_ERROR_INVALID_VALUE"; return kSuccess;
    case kErrorOutOfMemory: *name = "CUDA_ERROR_OUT_OF_MEMORY"; return kSuccess;
    case kErrorNotInitialized: *name = "CUDA_ERROR_NOT_INITIALIZED"; return kSuccess;
    case kErrorNotSupported: *name = "CUDA_ERROR_NOT_SUPPORTED"; return kSuccess;
    case kErrorUnsupportedPtxVersion: *name = "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"; return kSuccess;
    case kErrorNoDevice: *name = "CUDA_ERROR_NO_DEVICE"; return kSuccess;
    case kErrorHostMemoryAlreadyRegistered: *name = "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"; return kSuccess;
    default: *name = nullptr; return kErrorInvalidValue;
  }
}

Error cuGetErrorString(Error error, const char** text) {
  const Error known = cuGetErrorName(error, text);
  if (known == kSuccess) *text = "as the stand-in has it";
  return known;
}

Error cuDeviceGetCount(int* count) {
  const std::lock_guard lock(TheFake().mutex);
  if (const Error error = CheckReady("cuDeviceGetCount", false)) return error;
  *count = GpuCount();
  return kSuccess;
}

Error cuDeviceGet(Device* device, int ordinal) {
  const std::lock_guard lock(TheFake().mutex);
  if (const Error error = CheckReady("cuDeviceGet", false)) return error;
  if (ordinal < 0 || ordinal >= GpuCount()) return Refuse(kErrorInvalidDevice, "cuDeviceGet of no device");
  *device = ordinal;
  return kSuccess;
}

Error cuDevicePrimaryCtxRetain(ContextHandle* context, Device device) {
  const std::lock_guard lock(TheFake().mutex);
  if (const Error error = CheckReady("cuDevicePrimaryCtxRetain", false)) return error;
  if (device < 0 || device >= GpuCount()) return Refuse(kErrorInvalidDevice, "a context of no device");
  TheFake().contexts[device].device = device;
  if (++TheFake().contexts[device].retained == 1) TheFake().counts.contexts += 1;
  *context = &TheFake().contexts[device];
  return kSuccess;
}

Error cuDevicePrimaryCtxRelease_v2(Device device) {
  const std::lock_guard lock(TheFake().mutex);
  if (const Error error = CheckReady("cuDevicePrimaryCtxRelease", false)) return error;
  if (TheFake().contexts[device].retained == 0) return Refuse(kErrorInvalidContext, "a context released twice");
  if (--TheFake().contexts[device].retained == 0) TheFake().counts.contexts -= 1;
  return kSuccess;
}

Error cuCtxPushCurrent_v2(ContextHandle context) {
  const std::lock_guard lock(TheFake().mutex);
  if (const Error error = CheckReady("cuCtxPushCurrent", false)) return error;
  if (context == nullptr || context->retained == 0) return Refuse(kErrorInvalidContext, "a context that was released");
  current.push_back(context);
  return kSuccess;
}

Error cuCtxPopCurrent_v2(ContextHandle* context) {
  const std::lock_guard lock(TheFake().mutex);
  if (current.empty()) return Refuse(kErrorInvalidContext, "cuCtxPopCurrent without a context");
  *context = current.back();
  current.pop_back();
  return kSuccess;
}

Error cuCtxSynchronize() {
  std::unique_lock lock(TheFake().mutex);
  if (const Error error = CheckReady("cuCtxSynchronize")) return error;
  for (const Stream stream : std::set<Stream>(TheFake().streams)) AwaitIdle(lock, stream);
  for (const auto& [number, stream] : TheFake().default_streams) AwaitIdle(lock, stream);
  return kSuccess;
}

Error cuMemHostRegister_v2(void* memory, size_t bytes, unsigned flags) {
  const std::lock_guard lock(TheFake().mutex);
  if (const Error error = CheckReady("cuMemHostRegister")) return error;
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  if (bytes == 0 || begin % kPageBytes != 0 || flags > 15 || !IsMapped(begin, bytes)) {
    return Refuse(kErrorInvalidValue, "cuMemHostRegister of what is no mapped pages");
  }
  if (!IsLockable(begin)) return Refuse(kErrorInvalidValue, "cuMemHostRegister of a file of a disk");
  for (const auto& [other, other_bytes] : TheFake().registered) {
    if (begin < other + other_bytes && other < begin + bytes) {
      return Refuse(kErrorHostMemoryAlreadyRegistered, "cuMemHostRegister of what is registered");
    }
  }
  TheFake().registered[begin] = bytes;
  TheFake().counts.registrations += 1;
  return kSuccess;
}

Error cuMemHostUnregister(void* memory) {
  const std::lock_guard lock(TheFake().mutex);
  if (const Error error = CheckReady("cuMemHostUnregister")) return error;
  const auto found = TheFake().registered.find(reinterpret_cast<uintptr_t>(memory));
  if (found == TheFake().registered.end()) {
    return Refuse(kErrorHostMemoryNotRegistered, "cuMemHostUnregister of what is not registered");
  }
  const bool mapped = IsMapped(found->first, found->second);
  TheFake().registered.erase(found);
  TheFake().counts.registrations -= 1;
  return mapped ? kSuccess : Refuse(kErrorInvalidValue, "memory was unmapped before it was unregistered");
}

Error cuMemAlloc_v2(DevicePtr* address, size_t bytes) {
  const std::lock_guard lock(TheFake().mutex);
  if (const Error error = CheckReady("cuMemAlloc")) return error;
  if (bytes == 0) return Refuse(kErrorInvalidValue, "cuMemAlloc of no bytes");
  if (TheFake().fail_allocation) {
    TheFake().fail_allocation = false;
    return kErrorOutOfMemory;
  }
  void* const reserved = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return kErrorOutOfMemory;
  *address = reinterpret_cast<uintptr_t>(reserved);
  // What no copy has written is to be told from zeros.
  auto storage = std::make_unique<uint8_t[]>(bytes);
  std::memset(storage.get(), 0xA5, bytes);
  TheFake().memory[*address] = {bytes, current.back(), std::move(storage)};
  TheFake().counts.device_bytes += static_cast<int64_t>(bytes);
  return kSuccess;
}

Error cuMemFree_v2(DevicePtr address) {
  std::unique_lock lock(TheFake().mutex);
  if (const Error error = CheckReady("cuMemFree")) return error;
  const auto found = TheFake().memory.find(address);
  if (found == TheFake().memory.end()) return Refuse(kErrorInvalidValue, "cuMemFree of no allocation");
  TheFake().counts.device_bytes -= static_cast<int64_t>(found->second.bytes);
  munmap(reinterpret_cast<void*>(address), found->second.bytes);
  TheFake().memory.erase(found);
  return kSuccess;
}

Error cuMemcpyHtoDAsync_v2(DevicePtr to, const void* from, size_t bytes, Stream handle) {
  const std::lock_guard lock(TheFake().mutex);
  if (const Error error = CheckReady("cuMemcpyHtoDAsync")) return error;
  const Stream stream = Find(handle);
  if (stream == nullptr) return Refuse(kErrorInvalidHandle, "cuMemcpyHtoDAsync on a stream that is not there");
  if (Storage(to, bytes) == nullptr) return Refuse(kErrorInvalidValue, "cuMemcpyHtoDAsync beyond device memory");
  TheFake().counts.copies_to_device += 1;
  if (!IsRegistered(from, bytes)) TheFake().counts.pageable_copies += 1;
  EnqueueCopy(stream, true, to, reinterpret_cast<uintptr_t>(from), bytes);
  return kSuccess;
}

Error cuMemcpyDtoHAsync_v2(void* to, DevicePtr from, size_t bytes, Stream handle) {
  const std::lock_guard lock(TheFake().mutex);
  if (const Error error = CheckReady("cuMemcpyDtoHAsync")) return error;
  const Stream stream = Find(handle);
  if (stream == nullptr) return Refuse(kErrorInvalidHandle, "cuMemcpyDtoHAsync on a stream that is not there");
  if (Storage(from, bytes) == nullptr) return Refuse(kErrorInvalidValue, "cuMemcpyDtoHAsync beyond device memory");
  EnqueueCopy(stream, false, from, reinterpret_cast<uintptr_t>(to), bytes);
  return kSuccess;
}

Error cuStreamCreate(Stream* stream, unsigned flags) {
  const std::lock_guard lock(TheFake().mutex);
  if (const Error error = CheckReady("cuStreamCreate")) return error;
  if (flags > kStreamNonBlocking) return Refuse(kErrorInvalidValue, "cuStreamCreate with unknown flags");
  *stream = NewStream();
  TheFake().streams.insert(*stream);
  TheFake().counts.streams += 1;
  return kSuccess;
}

// Unlike the real one waits for the stream's work, so that its thread is joined.
Error cuStreamDestroy_v2(Stream stream) {
  {
    const std::lock_guard lock(TheFake().mutex);
    if (const Error error = CheckReady("cuStreamDestroy")) return error;
    if (TheFake().streams.erase(stream) == 0) return Refuse(kErrorInvalidHandle, "a stream destroyed twice");
    TheFake().counts.streams -= 1;
    stream->ending = true;
    TheFake().changed.notify_all();
  }
  stream->thread.join();
  delete stream;
  return kSuccess;
}

Error cuStreamSynchronize(Stream handle) {
  std::unique_lock lock(TheFake().mutex);
  if (const Error error = CheckReady("cuStreamSynchronize")) return error;
  const Stream stream = Find(handle);
  if (stream == nullptr) return Refuse(kErrorInvalidHandle, "cuStreamSynchronize of no stream");
  AwaitIdle(lock, stream);
  return kSuccess;
}

Error cuStreamQuery(Stream handle) {
  const std::lock_guard lock(TheFake().mutex);
  if (const Error error = CheckReady("cuStreamQuery")) return error;
  const Stream stream = Find(handle);
  if (stream == nullptr) return Refuse(kErrorInvalidHandle, "cuStreamQuery of no stream");
  return stream->work.empty() && !stream->busy ? kSuccess : kErrorNotReady;
}

Error cuStreamWaitEvent(Stream handle, Event event, unsigned flags) {
  const std::lock_guard lock(TheFake().mutex);
  if (const Error error = CheckReady("cuStreamWaitEvent")) return error;
  const Stream stream = Find(handle);
  if (stream == nullptr || TheFake().events.count(event) == 0 || flags > 1) {
    return Refuse(kErrorInvalidHandle, "cuStreamWaitEvent of a stream or event that is not there");
  }
  if (event->recorded == nullptr) return kSuccess;
  Enqueue(stream, [recorded = event->recorded] {
    std::unique_lock inner(TheFake().mutex);
    TheFake().changed.wait(inner, [&] { return *recorded; });
  });
  return kSuccess;
}

Error cuEventCreate(Event* event, unsigned flags) {
  const std::lock_guard lock(TheFake().mutex);
  if (const Error error = CheckReady("cuEventCreate")) return error;
  if (flags > 7) return Refuse(kErrorInvalidValue, "cuEventCreate with unknown flags");
  *event = new CUevent_st;
  TheFake().events.insert(*event);
  TheFake().counts.events += 1;
  return kSuccess;
}

Error cuEventDestroy_v2(Event event) {
  const std::lock_guard lock(TheFake().mutex);
  if (const Error error = CheckReady("cuEventDestroy")) return error;
  if (TheFake().events.erase(event) == 0) return Refuse(kErrorInvalidHandle, "an event destroyed twice");
  TheFake().counts.events -= 1;
  delete event;
  return kSuccess;
}

Error cuEventRecord(Event event, Stream handle) {
  const std::lock_guard lock(TheFake().mutex);
  if (const Error error = CheckReady("cuEventRecord")) return error;
  const Stream stream = Find(handle);
  if (stream == nullptr || TheFake().events.count(event) == 0) {
    return Refuse(kErrorInvalidHandle, "cuEventRecord of a stream or event that is not there");
  }
  event->recorded = std::make_shared<bool>(false);
  Enqueue(stream, [recorded = event->recorded] {
    const std::lock_guard inner(TheFake().mutex);
    *recorded = true;
    TheFake().changed.notify_all();
  });
  return kSuccess;
}

Error cuEventSynchronize(Event event) {
  std::unique_lock lock(TheFake().mutex);
  if (const Error error = CheckReady("cuEventSynchronize")) return error;
  if (TheFake().events.count(event) == 0) return Refuse(kErrorInvalidHandle, "cuEventSynchronize of no event");
  const std::shared_ptr<bool> recorded = event->recorded;
  if (recorded != nullptr) TheFake().changed.wait(lock, [&] { return *recorded; });
  return kSuccess;
}

Error cuLaunchHostFunc(Stream handle, void (*function)(void*), void* user) {
  const std::lock_guard lock(TheFake().mutex);
  if (const Error error = CheckReady("cuLaunchHostFunc")) return error;
  const Stream stream = Find(handle);
  if (stream == nullptr) return Refuse(kErrorInvalidHandle, "cuLaunchHostFunc on a stream that is not there");
  Enqueue(stream, [=] { function(user); });
  return kSuccess;
}
// NOLINTEND(readability-identifier-naming)

int FakeCudaIsRegistered(const void* memory, size_t bytes) {
  const std::lock_guard lock(TheFake().mutex);
  return IsRegistered(memory, bytes) ? 1 : 0;
}

void FakeCudaGetState(FakeCudaState* state) {
  const std::lock_guard lock(TheFake().mutex);
  *state = TheFake().counts;
}

const char* FakeCudaLastRefusal(void) {
  const std::lock_guard lock(TheFake().mutex);
  return TheFake().refusal.c_str();
}

void FakeCudaHoldCopies(int hold) {
  const std::lock_guard lock(TheFake().mutex);
  TheFake().hold_copies = hold != 0;
  TheFake().changed.notify_all();
}

void FakeCudaFailNextAllocation(void) {
  const std::lock_guard lock(TheFake().mutex);
  TheFake().fail_allocation = true;
}

}  // extern "C"
