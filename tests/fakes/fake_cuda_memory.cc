// The stand-in driver's memory that processes share, and the values in host memory that streams wait for and write.
//
// Memory is a file in memory (memfd), which is what is exported; a range of addresses is mapped without any access, so
// that the CPU cannot follow it, and the file is mapped a second time for copies alone. It refuses sizes that are no
// multiples of the granularity, ranges that are mapped twice or not at all, access that nobody set, memory that was not
// made to be exported, descriptors of something else, another GPU's memory, and values in memory that is not
// registered.
//
// $FAKE_CUDA_TAG: a part of the files' names, for who looks in /proc how many there are. $FAKE_CUDA_WITHOUT_ATTRIBUTE:
// the number of a device attribute that is 0.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/fakes/fake_cuda_state.h"

using namespace headrace::gpu;        // NOLINT(google-build-using-namespace): the driver's types, all over this file
using namespace headrace::gpu::fake;  // NOLINT(google-build-using-namespace)

namespace {

constexpr size_t kGranularity = 2 << 20;
constexpr char kFileName[] = "fake-cuda-";  // and the GPU's number
// What a registered address has added to it on the GPU: nobody may take the one for the other.
constexpr DevicePtr kDeviceMap = DevicePtr{1} << 60;

// The machine's number of a GPU that this process sees; -1 if it sees none such.
int MachineGpu(Device device) {
  const std::vector<int> visible = VisibleGpus();
  return device >= 0 && device < static_cast<int>(visible.size()) ? visible[static_cast<size_t>(device)] : -1;
}

void LetGo(Shared* memory) {
  if (--memory->holders > 0) return;
  TheFake().counts.device_bytes -= static_cast<int64_t>(memory->bytes);
  close(memory->fd);
  delete memory;
}

MemHandle Keep(Shared* memory) {
  static MemHandle last = 0;
  memory->holders += 1;
  TheFake().counts.device_bytes += static_cast<int64_t>(memory->bytes);
  TheFake().handles[++last] = memory;
  return last;
}

Shared* Of(MemHandle handle) {
  const auto found = TheFake().handles.find(handle);
  return found == TheFake().handles.end() ? nullptr : found->second;
}

Range* RangeAt(DevicePtr address, size_t bytes) {
  const auto found = TheFake().ranges.find(address);
  return found == TheFake().ranges.end() || found->second.bytes != bytes ? nullptr : &found->second;
}

// The word behind an address that cuMemHostGetDevicePointer gave; null if it is not registered.
std::atomic<uint32_t>* Word(DevicePtr address) {
  auto* const word = reinterpret_cast<std::atomic<uint32_t>*>(address - kDeviceMap);
  return address > kDeviceMap && address % 4 == 0 && IsRegistered(word, sizeof(*word)) ? word : nullptr;
}

bool AreGood(const MemProperties* properties) {
  return properties->type == 1 && properties->location.type == 1 && properties->windows == nullptr &&
         properties->handle_types <= kMemAsDescriptor && MachineGpu(properties->location.device) >= 0;
}

}  // namespace

uint8_t* headrace::gpu::fake::MappedStorage(DevicePtr address, size_t bytes) {
  auto found = TheFake().ranges.upper_bound(address);
  if (found == TheFake().ranges.begin()) return nullptr;
  --found;
  const Range& range = found->second;
  const uint64_t offset = address - found->first;
  const bool inside = offset <= range.bytes && bytes <= range.bytes - offset;
  return inside && range.accessible ? range.storage + offset : nullptr;
}

// NOLINTBEGIN(readability-identifier-naming): the driver's names
extern "C" {

Error cuDeviceGetAttribute(int* value, int attribute, Device device) {
  const std::lock_guard lock(TheFake().mutex);
  if (const Error error = CheckReady("cuDeviceGetAttribute", false)) return error;
  if (MachineGpu(device) < 0) return Refuse(kErrorInvalidDevice, "cuDeviceGetAttribute of no device");
  if (attribute != kAttributeMemMapping && attribute != kAttributeMemAsDescriptor) {
    return Refuse(kErrorInvalidValue, "an attribute that the stand-in does not know");
  }
  const char* const without = std::getenv("FAKE_CUDA_WITHOUT_ATTRIBUTE");
  *value = without != nullptr && std::atoi(without) == attribute ? 0 : 1;
  return kSuccess;
}

Error cuDeviceGetUuid_v2(Uuid* uuid, Device device) {
  const std::lock_guard lock(TheFake().mutex);
  if (const Error error = CheckReady("cuDeviceGetUuid", false)) return error;
  const int gpu = MachineGpu(device);
  if (gpu < 0) return Refuse(kErrorInvalidDevice, "cuDeviceGetUuid of no device");
  std::memset(uuid->bytes, 0x5A, sizeof(uuid->bytes));
  uuid->bytes[15] = static_cast<char>(gpu);
  return kSuccess;
}

Error cuMemGetAllocationGranularity(size_t* bytes, const MemProperties* properties, unsigned option) {
  const std::lock_guard lock(TheFake().mutex);
  if (const Error error = CheckReady("cuMemGetAllocationGranularity", false)) return error;
  if (!AreGood(properties) || option > 1) return Refuse(kErrorInvalidValue, "the granularity of no such memory");
  *bytes = kGranularity;
  return kSuccess;
}

Error cuMemCreate(MemHandle* handle, size_t bytes, const MemProperties* properties, unsigned long long flags) {
  const std::lock_guard lock(TheFake().mutex);
  if (const Error error = CheckReady("cuMemCreate", false)) return error;
  if (bytes == 0 || bytes % kGranularity != 0) return Refuse(kErrorInvalidValue, "cuMemCreate off the granularity");
  if (!AreGood(properties) || flags != 0) return Refuse(kErrorInvalidValue, "cuMemCreate of no such memory");
  if (TheFake().fail_allocation) {
    TheFake().fail_allocation = false;
    return kErrorOutOfMemory;
  }
  auto* const memory = new Shared;
  memory->gpu = MachineGpu(properties->location.device);
  memory->bytes = bytes;
  memory->exportable = properties->handle_types == kMemAsDescriptor;
  const char* const tag = std::getenv("FAKE_CUDA_TAG");
  const std::string name = kFileName + std::to_string(memory->gpu) + "-" + (tag == nullptr ? "" : tag);
  memory->fd = memfd_create(name.c_str(), MFD_CLOEXEC);
  if (memory->fd < 0 || ftruncate(memory->fd, static_cast<off_t>(bytes)) != 0) return kErrorOutOfMemory;
  void* const fresh = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory->fd, 0);
  if (fresh == MAP_FAILED) return kErrorOutOfMemory;
  std::memset(fresh, 0xA5, bytes);  // what no copy has written is to be told from zeros
  munmap(fresh, bytes);
  *handle = Keep(memory);
  return kSuccess;
}

Error cuMemRelease(MemHandle handle) {
  const std::lock_guard lock(TheFake().mutex);
  if (const Error error = CheckReady("cuMemRelease", false)) return error;
  Shared* const memory = Of(handle);
  if (memory == nullptr) return Refuse(kErrorInvalidValue, "cuMemRelease of no handle, or again");
  TheFake().handles.erase(handle);
  LetGo(memory);
  return kSuccess;
}

Error cuMemExportToShareableHandle(void* to, MemHandle handle, int type, unsigned long long flags) {
  const std::lock_guard lock(TheFake().mutex);
  if (const Error error = CheckReady("cuMemExportToShareableHandle", false)) return error;
  const Shared* const memory = Of(handle);
  if (memory == nullptr || !memory->exportable || type != kMemAsDescriptor || flags != 0) {
    return Refuse(kErrorInvalidValue,
                  "cuMemExportToShareableHandle of memory that is not there, or not to be exported");
  }
  *static_cast<int*>(to) = dup(memory->fd);
  return kSuccess;
}

Error cuMemImportFromShareableHandle(MemHandle* handle, void* from, int type) {
  const std::lock_guard lock(TheFake().mutex);
  if (const Error error = CheckReady("cuMemImportFromShareableHandle", false)) return error;
  const int fd = static_cast<int>(reinterpret_cast<intptr_t>(from));
  char name[64] = {};
  char link[64];
  std::snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
  struct stat file {};
  int gpu = -1;
  if (type != kMemAsDescriptor || readlink(link, name, sizeof(name) - 1) < 0 ||
      std::sscanf(name, "/memfd:fake-cuda-%d", &gpu) != 1 || fstat(fd, &file) != 0) {
    return Refuse(kErrorInvalidValue, "cuMemImportFromShareableHandle of what is no GPU's memory");
  }
  auto* const memory = new Shared;
  memory->gpu = gpu;
  memory->bytes = static_cast<size_t>(file.st_size);
  memory->fd = dup(fd);
  *handle = Keep(memory);
  return kSuccess;
}

Error cuMemAddressReserve(DevicePtr* address, size_t bytes, size_t alignment, DevicePtr hint,
                          unsigned long long flags) {
  const std::lock_guard lock(TheFake().mutex);
  if (const Error error = CheckReady("cuMemAddressReserve", false)) return error;
  if (bytes == 0 || bytes % kGranularity != 0 || alignment != 0 || hint != 0 || flags != 0) {
    return Refuse(kErrorInvalidValue, "cuMemAddressReserve off the granularity");
  }
  void* const reserved = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return kErrorOutOfMemory;
  *address = reinterpret_cast<DevicePtr>(reserved);
  TheFake().ranges[*address] = {bytes, nullptr, nullptr, false};
  return kSuccess;
}

Error cuMemAddressFree(DevicePtr address, size_t bytes) {
  const std::lock_guard lock(TheFake().mutex);
  if (const Error error = CheckReady("cuMemAddressFree", false)) return error;
  const Range* const range = RangeAt(address, bytes);
  if (range == nullptr || range->memory != nullptr) {
    return Refuse(kErrorInvalidValue, "cuMemAddressFree of what is not reserved, or still mapped");
  }
  TheFake().ranges.erase(address);
  munmap(reinterpret_cast<void*>(address), bytes);
  return kSuccess;
}

Error cuMemMap(DevicePtr address, size_t bytes, size_t offset, MemHandle handle, unsigned long long flags) {
  const std::lock_guard lock(TheFake().mutex);
  if (const Error error = CheckReady("cuMemMap", false)) return error;
  Range* const range = RangeAt(address, bytes);
  Shared* const memory = Of(handle);
  if (range == nullptr || range->memory != nullptr || memory == nullptr || offset != 0 || bytes > memory->bytes ||
      flags != 0) {
    return Refuse(kErrorInvalidValue, "cuMemMap of memory that is not there, or not so large, or to no free range");
  }
  void* const storage = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory->fd, 0);
  if (storage == MAP_FAILED) return kErrorOutOfMemory;
  range->storage = static_cast<uint8_t*>(storage);
  range->memory = memory;
  memory->holders += 1;
  return kSuccess;
}

Error cuMemUnmap(DevicePtr address, size_t bytes) {
  const std::lock_guard lock(TheFake().mutex);
  if (const Error error = CheckReady("cuMemUnmap", false)) return error;
  Range* const range = RangeAt(address, bytes);
  if (range == nullptr || range->memory == nullptr)
    return Refuse(kErrorInvalidValue, "cuMemUnmap of what is not mapped");
  munmap(range->storage, bytes);
  LetGo(range->memory);
  *range = {bytes, nullptr, nullptr, false};
  return kSuccess;
}

Error cuMemSetAccess(DevicePtr address, size_t bytes, const MemAccess* access, size_t count) {
  const std::lock_guard lock(TheFake().mutex);
  if (const Error error = CheckReady("cuMemSetAccess", false)) return error;
  Range* const range = RangeAt(address, bytes);
  if (range == nullptr || range->memory == nullptr || count != 1 || access->location.type != 1 ||
      access->flags != kMemReadWrite) {
    return Refuse(kErrorInvalidValue, "cuMemSetAccess of what is not mapped");
  }
  if (MachineGpu(access->location.device) != range->memory->gpu) {
    return Refuse(kErrorInvalidDevice, "cuMemSetAccess for another GPU than the memory's");
  }
  range->accessible = true;
  return kSuccess;
}

Error cuMemHostGetDevicePointer_v2(DevicePtr* address, void* memory, unsigned flags) {
  const std::lock_guard lock(TheFake().mutex);
  if (const Error error = CheckReady("cuMemHostGetDevicePointer")) return error;
  if (flags != 0 || !IsRegistered(memory, 1)) {
    return Refuse(kErrorInvalidValue, "cuMemHostGetDevicePointer of what is not registered");
  }
  *address = reinterpret_cast<DevicePtr>(memory) + kDeviceMap;
  return kSuccess;
}

Error cuStreamWaitValue32_v2(Stream handle, DevicePtr address, uint32_t value, unsigned flags) {
  const std::lock_guard lock(TheFake().mutex);
  if (const Error error = CheckReady("cuStreamWaitValue32")) return error;
  const Stream stream = Find(handle);
  const std::atomic<uint32_t>* const word = Word(address);
  if (stream == nullptr || flags != kWaitValueGeq)
    return Refuse(kErrorInvalidHandle, "cuStreamWaitValue32 on no stream");
  if (word == nullptr) return Refuse(kErrorInvalidValue, "cuStreamWaitValue32 of memory that is not registered");
  TheFake().counts.value_waits += 1;
  // Looks again and again, as the GPU does: who writes is another process, and wakes nobody.
  Enqueue(stream, [word, value] {
    while (static_cast<int32_t>(word->load(std::memory_order_acquire) - value) < 0) usleep(20);
  });
  return kSuccess;
}

Error cuStreamWriteValue32_v2(Stream handle, DevicePtr address, uint32_t value, unsigned flags) {
  const std::lock_guard lock(TheFake().mutex);
  if (const Error error = CheckReady("cuStreamWriteValue32")) return error;
  const Stream stream = Find(handle);
  std::atomic<uint32_t>* const word = Word(address);
  if (stream == nullptr || flags != kWriteValueDefault) {
    return Refuse(kErrorInvalidHandle, "cuStreamWriteValue32 on no stream");
  }
  if (word == nullptr) return Refuse(kErrorInvalidValue, "cuStreamWriteValue32 to memory that is not registered");
  Enqueue(stream, [word, value] { word->store(value, std::memory_order_release); });
  return kSuccess;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
