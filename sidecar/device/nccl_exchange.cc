#include "sidecar/device/nccl_exchange.h"

#include <nccl.h>
#include <sys/mman.h>

#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "common/gpu/context.h"

namespace headrace::device {
namespace {

using Clock = std::chrono::steady_clock;
using side::ExchangeOptions;

// NCCL tells nothing unasked. Most calls are over within the first of these.
constexpr int kQuickLooks = 200;
constexpr auto kLookAgain = std::chrono::microseconds(500);

class NcclExchange : public side::Exchange {
 public:
  explicit NcclExchange(const ExchangeOptions& options) : options_(options) {}

  ~NcclExchange() override {
    Abort();
    if (context_ == nullptr) return;
    const gpu::PrimaryContext::Current current(*context_);
    if (stream_ != nullptr) driver_->stream_destroy(stream_);
    for (const Part& part : allocated_) {
      driver_->mem_host_unregister(part.data);
      munmap(part.data, part.bytes);
    }
  }

  Status Open() {
    ASSIGN_OR_RETURN(driver_, gpu::Driver::Open());
    ASSIGN_OR_RETURN(context_, gpu::PrimaryContext::Retain(driver_, 0));
    const gpu::PrimaryContext::Current current(*context_);
    return driver_->Check(driver_->stream_create(&stream_, gpu::kStreamNonBlocking), "cuStreamCreate");
  }

  Result<std::string> NewId() override {
    ncclUniqueId id;
    if (const ncclResult_t result = ncclGetUniqueId(&id); result != ncclSuccess)
      return Error("ncclGetUniqueId", result);
    return std::string(id.internal, sizeof id.internal);
  }

  Status Join(const std::string& text, const GiveUp& give_up) override {
    ncclUniqueId id;
    if (text.size() != sizeof id.internal) return Internal("an NCCL id of " + std::to_string(text.size()) + " bytes");
    std::memcpy(id.internal, text.data(), sizeof id.internal);
    const gpu::PrimaryContext::Current current(*context_);
    // Not blocking: a call that waits for a worker that is gone can be given up.
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    const ncclResult_t result = ncclCommInitRankConfig(&comm_, static_cast<int>(options_.num_workers), id,
                                                       static_cast<int>(options_.worker), &config);
    return Finish("ncclCommInitRankConfig", result, give_up);
  }

  Result<uint8_t*> Allocate(size_t bytes) override {
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const std::string what = std::to_string(bytes) + " bytes for the exchange of batches";
    if (memory == MAP_FAILED) return Exhausted("no memory: " + what);
    const gpu::PrimaryContext::Current current(*context_);
    const Status locked =
        driver_->Check(driver_->mem_host_register(memory, bytes, gpu::kMemHostRegisterPortable), "cuMemHostRegister");
    if (!locked.ok()) {
      munmap(memory, bytes);
      return locked.WithContext(what);
    }
    allocated_.push_back({static_cast<uint8_t*>(memory), bytes});
    return allocated_.back().data;
  }

  Status Broadcast(const Part& part, const GiveUp& give_up) override {
    return Do("ncclBroadcast", give_up,
              [&] { return ncclBroadcast(part.data, part.data, part.bytes, ncclUint8, 0, comm_, stream()); });
  }

  Status Scatter(std::span<const Part> parts, const GiveUp& give_up) override {
    return Do("ncclSend", give_up, [&] {
      ncclResult_t result = ncclGroupStart();
      for (size_t worker = 1; worker < parts.size() && Begun(result); ++worker) {
        result =
            ncclSend(parts[worker].data, parts[worker].bytes, ncclUint8, static_cast<int>(worker), comm_, stream());
      }
      const ncclResult_t ended = ncclGroupEnd();
      return Begun(result) ? ended : result;
    });
  }

  Status Receive(const Part& part, const GiveUp& give_up) override {
    return Do("ncclRecv", give_up, [&] { return ncclRecv(part.data, part.bytes, ncclUint8, 0, comm_, stream()); });
  }

 private:
  static bool Begun(ncclResult_t result) { return result == ncclSuccess || result == ncclInProgress; }
  cudaStream_t stream() const { return stream_; }  // the runtime's name for the driver's type

  Status Error(const std::string& call, ncclResult_t result) const {
    const char* const detail = ncclGetLastError(comm_);
    return Unavailable(call + ": " + ncclGetErrorString(result) + " (" + std::to_string(result) + ")" +
                       (detail == nullptr || *detail == '\0' ? "" : std::string(": ") + detail) +
                       "; NCCL_DEBUG=INFO in the loader's environment makes NCCL say more");
  }

  template <typename Call>
  Status Do(const char* name, const GiveUp& give_up, const Call& call) {
    if (comm_ == nullptr) return Unavailable(std::string(name) + ": the exchange has ended");
    const gpu::PrimaryContext::Current current(*context_);
    return Finish(name, call(), give_up);
  }

  // Waits until what was begun is done. NCCL first gets it ready, on threads of its own, then the GPU does it.
  Status Finish(const std::string& call, ncclResult_t result, const GiveUp& give_up) {
    const Clock::time_point end = Clock::now() + std::chrono::milliseconds(options_.timeout_ms);
    for (int look = 0;; ++look) {
      if (result == ncclSuccess || result == ncclInProgress) {
        ncclResult_t state = ncclSuccess;
        const ncclResult_t asked = ncclCommGetAsyncError(comm_, &state);
        result = asked == ncclSuccess ? state : asked;
      }
      if (!Begun(result)) return Broken(Error(call, result));
      if (result == ncclSuccess) {
        const gpu::Error done = driver_->stream_query(stream_);
        if (done == gpu::kSuccess) return {};
        if (done != gpu::kErrorNotReady) return Broken(driver_->Check(done, call + ", then cuStreamQuery"));
      }
      if (look < kQuickLooks) {
        std::this_thread::yield();
        continue;
      }
      if (give_up()) return Broken(Cancelled(call + ": given up"));
      if (Clock::now() > end) {
        return Broken(Unavailable(call + " did not end within " + std::to_string(options_.timeout_ms) +
                                  " ms: another worker's loader, its GPU or the network between them stands still"));
      }
      std::this_thread::sleep_for(kLookAgain);
    }
  }

  Status Broken(Status why) {
    Abort();
    return why;
  }

  // What is under way on the GPU ends without having done its work.
  void Abort() {
    if (comm_ == nullptr) return;
    const gpu::PrimaryContext::Current current(*context_);
    ncclCommAbort(comm_);
    comm_ = nullptr;
  }

  const ExchangeOptions options_;
  const gpu::Driver* driver_ = nullptr;
  std::unique_ptr<gpu::PrimaryContext> context_;
  gpu::Stream stream_ = nullptr;
  ncclComm_t comm_ = nullptr;
  std::vector<Part> allocated_;
};

}  // namespace

Result<std::unique_ptr<side::Exchange>> MakeNcclExchange(const ExchangeOptions& options) {
  auto exchange = std::make_unique<NcclExchange>(options);
  RETURN_IF_ERROR(exchange->Open());
  return std::unique_ptr<side::Exchange>(std::move(exchange));
}

}  // namespace headrace::device
