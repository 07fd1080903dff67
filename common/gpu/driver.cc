#include "common/gpu/driver.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>
#include <optional>

namespace headrace::gpu {
namespace {

constexpr char kHostRemedy[] = "or write spec.delivery.memory: Host";

std::string VersionText(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// What can be done about an error, and the code that callers see.
struct Meaning {
  Code code;
  const char* remedy;
};

Meaning MeaningOf(Error error) {
  switch (error) {
    case kErrorOutOfMemory:
      return {Code::kExhausted,
              "the GPU's memory, or what this container may lock of host memory, is used up: lower "
              "the batch size or the number of batches kept, "};
    case kErrorNotInitialized:
      return {Code::kUnavailable,
              "a process forked from one that uses CUDA cannot use it: start it by spawn or exec, "};
    case kErrorDeinitialized: return {Code::kUnavailable, "the process is ending, "};
    case kErrorDeviceUnavailable:
      return {Code::kUnavailable, "another process has the GPU for itself (nvidia-smi shows its compute mode), "};
    case kErrorNoDevice:
      return {Code::kNotFound, "give the trainer's container a GPU (nvidia.com/gpu), see CUDA_VISIBLE_DEVICES, "};
    case kErrorNotSupported: return {Code::kUnavailable, "this GPU, or the driver as it is set up, cannot do it, "};
    case kErrorInvalidDevice: return {Code::kInvalidArgument, "name one of the GPUs that this process sees, "};
    case kErrorNoBinaryForGpu:
      return {Code::kUnavailable, "this build's code is for GPUs of compute capability 7.5 and newer, "};
    case kErrorUnsupportedPtxVersion:
      return {Code::kUnavailable, "this build's code is for a newer driver than the node's: update the driver, "};
    case kErrorSystemDriverMismatch:
    case kErrorCompatNotSupportedOnDevice:
      return {Code::kUnavailable,
              "the container's CUDA libraries do not go with the node's driver: update the driver, "};
    default: return {Code::kUnavailable, "the CUDA driver's log (dmesg: NVRM, Xid) may say more, "};
  }
}

// Finds functions until one is missing.
class Symbols {
 public:
  explicit Symbols(void* library) : library_(library) {}

  template <typename Function>
  void Find(const char* name, Function** to) {
    *to = reinterpret_cast<Function*>(dlsym(library_, name));
    if (*to == nullptr && missing_.empty()) missing_ = name;
  }
  const std::string& missing() const { return missing_; }

 private:
  void* library_;
  std::string missing_;
};

// The versioned names are the ones that programs linked against libcuda use; the plain ones are of CUDA 3.
Status FindAll(void* library, const std::string& file, Driver* driver) {
  Symbols symbols(library);
  symbols.Find("cuInit", &driver->init);
  symbols.Find("cuDriverGetVersion", &driver->driver_get_version);
  symbols.Find("cuGetErrorName", &driver->get_error_name);
  symbols.Find("cuGetErrorString", &driver->get_error_string);
  symbols.Find("cuDeviceGetCount", &driver->device_get_count);
  symbols.Find("cuDeviceGet", &driver->device_get);
  symbols.Find("cuDeviceGetAttribute", &driver->device_get_attribute);
  symbols.Find("cuDeviceGetUuid_v2", &driver->device_get_uuid);
  symbols.Find("cuDevicePrimaryCtxRetain", &driver->device_primary_ctx_retain);
  symbols.Find("cuDevicePrimaryCtxRelease_v2", &driver->device_primary_ctx_release);
  symbols.Find("cuCtxPushCurrent_v2", &driver->ctx_push_current);
  symbols.Find("cuCtxPopCurrent_v2", &driver->ctx_pop_current);
  symbols.Find("cuCtxSynchronize", &driver->ctx_synchronize);
  symbols.Find("cuMemHostRegister_v2", &driver->mem_host_register);
  symbols.Find("cuMemHostUnregister", &driver->mem_host_unregister);
  symbols.Find("cuMemHostGetDevicePointer_v2", &driver->mem_host_get_device_pointer);
  symbols.Find("cuMemAlloc_v2", &driver->mem_alloc);
  symbols.Find("cuMemFree_v2", &driver->mem_free);
  symbols.Find("cuMemGetAllocationGranularity", &driver->mem_get_allocation_granularity);
  symbols.Find("cuMemCreate", &driver->mem_create);
  symbols.Find("cuMemRelease", &driver->mem_release);
  symbols.Find("cuMemExportToShareableHandle", &driver->mem_export);
  symbols.Find("cuMemImportFromShareableHandle", &driver->mem_import);
  symbols.Find("cuMemAddressReserve", &driver->mem_address_reserve);
  symbols.Find("cuMemAddressFree", &driver->mem_address_free);
  symbols.Find("cuMemMap", &driver->mem_map);
  symbols.Find("cuMemUnmap", &driver->mem_unmap);
  symbols.Find("cuMemSetAccess", &driver->mem_set_access);
  symbols.Find("cuMemcpyHtoDAsync_v2", &driver->memcpy_htod_async);
  symbols.Find("cuMemcpyDtoHAsync_v2", &driver->memcpy_dtoh_async);
  symbols.Find("cuStreamCreate", &driver->stream_create);
  symbols.Find("cuStreamDestroy_v2", &driver->stream_destroy);
  symbols.Find("cuStreamSynchronize", &driver->stream_synchronize);
  symbols.Find("cuStreamQuery", &driver->stream_query);
  symbols.Find("cuStreamWaitEvent", &driver->stream_wait_event);
  symbols.Find("cuStreamWaitValue32_v2", &driver->stream_wait_value32);
  symbols.Find("cuStreamWriteValue32_v2", &driver->stream_write_value32);
  symbols.Find("cuEventCreate", &driver->event_create);
  symbols.Find("cuEventDestroy_v2", &driver->event_destroy);
  symbols.Find("cuEventRecord", &driver->event_record);
  symbols.Find("cuEventSynchronize", &driver->event_synchronize);
  symbols.Find("cuModuleLoadData", &driver->module_load_data);
  symbols.Find("cuModuleUnload", &driver->module_unload);
  symbols.Find("cuModuleGetFunction", &driver->module_get_function);
  symbols.Find("cuLaunchKernel", &driver->launch_kernel);
  if (symbols.missing().empty()) return {};
  return Unavailable("the CUDA driver " + file + " has no " + symbols.missing() +
                     ": update the node's NVIDIA driver to one for CUDA " + VersionText(kOldestDriver) + " or newer, " +
                     kHostRemedy);
}

Result<Driver> OpenNow() {
  const char* const named = std::getenv(kLibraryEnv);
  const std::string file = named != nullptr && *named != '\0' ? named : "libcuda.so.1";
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return NotFound("no CUDA driver in this process (" + std::string(dlerror()) +
                    "): give the container a GPU (nvidia.com/gpu), " + kHostRemedy);
  }
  Driver driver{};
  RETURN_IF_ERROR(FindAll(library, file, &driver));
  int version = 0;
  RETURN_IF_ERROR(driver.Check(driver.driver_get_version(&version), "cuDriverGetVersion"));
  if (version < kOldestDriver) {
    return Unavailable("the CUDA driver is for CUDA " + VersionText(version) + ", " + VersionText(kOldestDriver) +
                       " is the oldest that works: update the node's NVIDIA driver, " + kHostRemedy);
  }
  RETURN_IF_ERROR(driver.Check(driver.init(0), "cuInit"));
  return driver;
}

}  // namespace

Result<const Driver*> Driver::Open() {
  static std::mutex mutex;
  static std::optional<Driver> opened;  // guarded by mutex until it is there
  static pid_t opened_by = 0;
  const std::lock_guard lock(mutex);
  if (!opened) {
    ASSIGN_OR_RETURN(opened, OpenNow());
    opened_by = getpid();
  }
  if (getpid() == opened_by) return &*opened;
  return Unavailable(
      "this process was forked from one that uses CUDA and cannot use it: start it by spawn or exec "
      "(torch: multiprocessing.set_start_method(\"spawn\")), or take host memory");
}

Status Driver::Check(Error error, const std::string& call) const {
  if (error == kSuccess) return {};
  const char* name = nullptr;
  const char* text = nullptr;
  if (get_error_name(error, &name) != kSuccess || name == nullptr) name = "an unknown error";
  if (get_error_string(error, &text) != kSuccess || text == nullptr) text = "no text";
  const Meaning meaning = MeaningOf(error);
  return {meaning.code,
          call + ": " + name + " (" + std::to_string(error) + ", " + text + "): " + meaning.remedy + kHostRemedy};
}

Status Driver::RegisterRing(void* ring, size_t bytes) const {
  const std::string call = "cuMemHostRegister of a ring of " + std::to_string(bytes) + " bytes";
  const Error error = mem_host_register(ring, bytes, kMemHostRegisterPortable);
  if (error != kErrorInvalidValue) return Check(error, call);
  return Unavailable(
      call +
      ": CUDA_ERROR_INVALID_VALUE, as for a file of a disk, which cannot be locked: let the run directory "
      "lie in memory (an emptyDir with medium: Memory; /dev/shm), " +
      kHostRemedy);
}

Result<int> CountGpus() {
  ASSIGN_OR_RETURN(const Driver* const driver, Driver::Open());
  int count = 0;
  RETURN_IF_ERROR(driver->Check(driver->device_get_count(&count), "cuDeviceGetCount"));
  if (count > 0) return count;
  return driver->Check(kErrorNoDevice, "cuDeviceGetCount");
}

Result<std::string> GpuUuid(int ordinal) {
  ASSIGN_OR_RETURN(const Driver* const driver, Driver::Open());
  const std::string where = " of GPU " + std::to_string(ordinal);
  Device device = 0;
  Uuid uuid{};
  RETURN_IF_ERROR(driver->Check(driver->device_get(&device, ordinal), "cuDeviceGet" + where));
  RETURN_IF_ERROR(driver->Check(driver->device_get_uuid(&uuid, device), "cuDeviceGetUuid" + where));
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "GPU";
  for (size_t i = 0; i < sizeof(uuid.bytes); ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    const auto byte = static_cast<unsigned char>(uuid.bytes[i]);
    text += {kDigits[byte / 16], kDigits[byte % 16]};
  }
  return text;
}

}  // namespace headrace::gpu
