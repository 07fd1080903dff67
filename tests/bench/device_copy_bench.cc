// Batches on their way to a GPU, by the client (Pinned) and by the loader (Device), beside a plain copy of as many
// bytes. One line a figure. Skipped without a GPU; against a stand-in driver ($HEADRACE_LIBCUDA) it runs, and its
// figures say nothing.
//   device_copy_bench [MEBIBYTES]     of a batch; 64
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/gpu/context.h"
#include "common/spec/names.h"
#include "headrace/client.h"
#include "sidecar/loader/engine.h"
#include "sidecar/loader/handshake_server.h"
#include "tests/bench/timing.h"
#include "tests/fakes/fake_loader.h"

using headrace::Result;
using headrace::Status;
using headrace::bench::Median;
using headrace::bench::NowNs;
using headrace::fakes::FakeLoader;
using headrace::fakes::FakeLoaderOptions;
using headrace::side::Engine;
using headrace::side::Feed;
using headrace::side::FeedEpoch;
using headrace::side::HandshakeServer;
namespace gpu = headrace::gpu;
namespace ring = headrace::ring;

namespace {

constexpr int kRounds = 7;
constexpr size_t kWarmUp = 10;
constexpr size_t kBatches = 100;
constexpr size_t kSlots = 6;
constexpr int64_t kRowBytes = 20;  // of the fake loader's label and x

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "device_copy_bench: %s\n", what.c_str());
  std::exit(1);
}

void Must(const gpu::Driver& driver, gpu::Error error, const char* call) {
  const headrace::Status status = driver.Check(error, call);
  if (!status.ok()) Fail(status.ToString());
}

// Copies one after another from locked memory of as many places, of the kind that rings are in.
class PlainCopies {
 public:
  PlainCopies(const gpu::Driver& driver, gpu::Stream stream, size_t bytes)
      : driver_(driver), stream_(stream), bytes_(bytes) {
    void* const from =
        mmap(nullptr, kSlots * bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (from == MAP_FAILED) Fail("no memory for plain copies");
    from_ = static_cast<uint8_t*>(from);
    Must(driver, driver.mem_host_register(from_, kSlots * bytes, gpu::kMemHostRegisterPortable), "cuMemHostRegister");
    Must(driver, driver.mem_alloc(&to_, bytes), "cuMemAlloc");
  }
  ~PlainCopies() {
    driver_.mem_free(to_);
    driver_.mem_host_unregister(from_);
    munmap(from_, kSlots * bytes_);
  }
  PlainCopies(const PlainCopies&) = delete;
  PlainCopies& operator=(const PlainCopies&) = delete;

  // Bytes in a nanosecond.
  double Rate() {
    double start = 0;
    for (size_t i = 0; i < kWarmUp + kBatches; ++i) {
      if (i == kWarmUp) {
        Must(driver_, driver_.stream_synchronize(stream_), "cuStreamSynchronize");
        start = NowNs();
      }
      Must(driver_, driver_.memcpy_htod_async(to_, from_ + i % kSlots * bytes_, bytes_, stream_), "cuMemcpyHtoDAsync");
    }
    Must(driver_, driver_.stream_synchronize(stream_), "cuStreamSynchronize");
    return static_cast<double>(bytes_ * kBatches) / (NowNs() - start);
  }

 private:
  const gpu::Driver& driver_;
  const gpu::Stream stream_;
  const size_t bytes_;
  uint8_t* from_ = nullptr;
  gpu::DevicePtr to_ = 0;
};

// A client that takes a loader's batches to the GPU.
class Trainer {
 public:
  explicit Trainer(const std::string& directory) {
    headrace_connect_options connect{};
    connect.size = sizeof(connect);
    connect.directory = directory.c_str();
    connect.timeout_ms = 10000;
    connect.takes_device = 1;
    if (headrace_connect(&connect, &dataset_) != HEADRACE_OK) Fail(headrace_last_error());
    if (headrace_iterator_create(dataset_, 0, &iterator_) != HEADRACE_OK) Fail(headrace_last_error());
  }
  ~Trainer() {
    headrace_iterator_free(iterator_);
    headrace_dataset_free(dataset_);
  }
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // Takes the next batch as a step on `stream` does; returns the time that headrace_next took.
  double Step(gpu::Stream stream) {
    headrace_batch* batch = nullptr;
    const double start = NowNs();
    if (headrace_next(iterator_, -1, &batch) != HEADRACE_OK) Fail(headrace_last_error());
    const double took = NowNs() - start;
    if (headrace_batch_use_on_stream(batch, stream) != HEADRACE_OK) Fail(headrace_last_error());
    headrace_batch_free(batch);
    return took;
  }

 private:
  headrace_dataset* dataset_ = nullptr;
  headrace_iterator* iterator_ = nullptr;
};

class Folder {
 public:
  Folder() {
    char name[] = "/dev/shm/headrace-bench-XXXXXX";
    path_ = mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A loader that only hands slots out: what they hold does not matter here. The client copies (Pinned).
class PinnedLoader {
 public:
  explicit PinnedLoader(int64_t rows) {
    FakeLoaderOptions options;
    options.directory = folder_.path();
    options.steps = -1;
    options.rows = rows;
    options.slots = kSlots;
    options.fill = false;
    auto loader = FakeLoader::Start(options);
    if (!loader.ok()) Fail(loader.status().ToString());
    loader_ = std::move(*loader);
  }
  const std::string& directory() const { return folder_.path(); }

 private:
  const Folder folder_;
  std::unique_ptr<FakeLoader> loader_;
};

// The same, on the loader's side of what copies (Device): its engine, over a feed that has nothing to do.
class IdleFeed : public Feed {
 public:
  explicit IdleFeed(int64_t rows) : rows_(rows) {
    plan_.hash = "0123456789abcdef";
    plan_.spec.delivery.memory = headrace::MemoryKind::kDevice;
    plan_.spec.delivery.prefetch_steps = kSlots - 2;
  }
  headrace::Result<std::unique_ptr<FeedEpoch>> Start(const ring::Position&) override {
    return std::unique_ptr<FeedEpoch>(std::make_unique<Epoch>(rows_));
  }
  const headrace::Plan& plan() const override { return plan_; }
  const headrace::Topology& topology() const override { return topology_; }
  const std::vector<headrace::TensorSpec>& element_spec() const override { return element_spec_; }
  uint64_t max_bytes() const override { return static_cast<uint64_t>(rows_) * kRowBytes; }
  bool holds_steps() const override { return false; }
  int64_t cardinality() const override { return headrace::kInfiniteCardinality; }
  uint64_t run_seed() const override { return 1; }
  uint64_t bytes_read() const override { return 0; }
  headrace::side::StageTimes read_times() const override { return {}; }
  int64_t default_prefetch_steps() const override { return kSlots - 2; }

 private:
  class Epoch : public FeedEpoch {
   public:
    explicit Epoch(int64_t rows) : rows_(rows) {}
    Result<Next> Advance(Delivery* delivery) override {
      *delivery = {next_, 0, rows_, rows_, false, static_cast<uint64_t>(next_)};
      ++next_;
      return Next::kDelivery;
    }
    Result<size_t> Begin(const Delivery&, Place* place) override {
      place->extents.resize(1);
      place->extents[0] = {0, static_cast<uint64_t>(rows_) * kRowBytes, 2, {rows_, kRowBytes}};
      return size_t{0};
    }
    Status WritePart(const Delivery&, size_t, size_t, Place*) override { return {}; }
    Status End(Delivery*, Place*) override { return {}; }

   private:
    const int64_t rows_;
    int64_t next_ = 0;
  };

  const int64_t rows_;
  headrace::Plan plan_;
  const headrace::Topology topology_;
  const std::vector<headrace::TensorSpec> element_spec_ = {
      {"x", headrace::DType::kUint8, {headrace::kUnknownDim, kRowBytes}}};
};

template <typename T>
T Checked(Result<T> made) {
  if (!made.ok()) Fail(made.status().ToString());
  return std::move(*made);
}

class DeviceLoader {
 public:
  explicit DeviceLoader(int64_t rows)
      : feed_(rows),
        rings_(Checked(Engine::OpenRings(folder_.path(), feed_))),
        device_rings_(Checked(headrace::device::MakeDeviceRings(rings_, {}))),
        engine_(&feed_, &rings_, &device_rings_, &pool_, &signal_, nullptr) {
    ring::HandshakeReply reply;
    reply.plan_hash = feed_.plan().hash;
    reply.element_spec = feed_.element_spec();
    reply.memory = headrace::MemoryKind::kDevice;
    reply.device_rings = {{device_rings_[0]->gpu(), device_rings_[0]->generation()}};
    server_ = Checked(HandshakeServer::Start(folder_.path() + "/" + headrace::names::kSocketFile,
                                             headrace::side::HandshakeOffer{reply, {rings_[0]->fd()}, &device_rings_}));
    thread_ = std::thread([this] { ran_ = engine_.Run(stop_); });
  }
  // REQUIRES: the trainer has freed its batches.
  ~DeviceLoader() {
    stop_ = true;
    thread_.join();
    if (!ran_.ok()) Fail(ran_.ToString());
    // The trainer has gone: nobody waits for what it left.
    device_rings_[0]->SetReader(headrace::device::DeviceRing::Reader::kHost);
  }
  DeviceLoader(const DeviceLoader&) = delete;
  DeviceLoader& operator=(const DeviceLoader&) = delete;
  const std::string& directory() const { return folder_.path(); }

 private:
  const Folder folder_;
  IdleFeed feed_;
  std::vector<std::unique_ptr<ring::RingWriter>> rings_;
  headrace::device::DeviceRings device_rings_;
  headrace::side::WorkPool pool_{1};
  headrace::side::Signal signal_;
  Engine engine_;
  std::unique_ptr<HandshakeServer> server_;
  std::atomic<bool> stop_{false};
  Status ran_;
  std::thread thread_;
};

// Large batches one after the other, in turns with plain copies of as many bytes, and small ones that are ready.
template <typename Loader>
void Measure(const std::string& memory, const gpu::Driver& driver, gpu::Stream stream, size_t bytes) {
  const int64_t rows = static_cast<int64_t>(bytes) / kRowBytes;
  const auto bytes_of_batch = static_cast<size_t>(rows * kRowBytes);
  std::vector<double> plain, rates, ratios;
  {
    PlainCopies copies(driver, stream, bytes_of_batch);
    const Loader loader(rows);
    Trainer trainer(loader.directory());
    for (int round = 0; round < kRounds; ++round) {
      plain.push_back(copies.Rate());
      // As far ahead at the start as at the end.
      for (size_t i = 0; i < kWarmUp; ++i) trainer.Step(stream);
      Must(driver, driver.stream_synchronize(stream), "cuStreamSynchronize");
      const double start = NowNs();
      for (size_t i = 0; i < kBatches; ++i) trainer.Step(stream);
      Must(driver, driver.stream_synchronize(stream), "cuStreamSynchronize");
      rates.push_back(static_cast<double>(bytes_of_batch * kBatches) / (NowNs() - start));
      ratios.push_back(rates.back() / plain.back());
    }
  }
  std::vector<double> next;
  {
    const Loader loader(64);
    Trainer trainer(loader.directory());
    for (int i = 0; i < 500; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // a step of training, in which the next batch comes
      next.push_back(trainer.Step(stream));
    }
  }
  const std::string beside = "plain_copy_to_gpu_beside_" + memory;
  std::printf("%s  %9.3f GB/s\n", beside.c_str(), Median(plain));
  std::printf("%s_batches_to_gpu  %9.3f GB/s  %8.3f of %s\n", memory.c_str(), Median(rates), Median(ratios),
              beside.c_str());
  std::printf("%s_c_next_ready    %9.1f ns\n", memory.c_str(), Median(next));
}

}  // namespace

int main(int argc, char** argv) {
  const size_t bytes = (argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 64) << 20;
  const Result<int> gpus = gpu::CountGpus();
  if (!gpus.ok()) {
    std::printf("skipped: no GPU here: %s\n", gpus.status().message().c_str());
    return 0;
  }
  const gpu::Driver* const driver = Checked(gpu::Driver::Open());
  const auto context = Checked(gpu::PrimaryContext::Retain(driver, 0));
  const gpu::PrimaryContext::Current current(*context);
  gpu::Stream stream = nullptr;
  Must(*driver, driver->stream_create(&stream, gpu::kStreamNonBlocking), "cuStreamCreate");
  Measure<PinnedLoader>("pinned", *driver, stream, bytes);
  Measure<DeviceLoader>("device", *driver, stream, bytes);
  Must(*driver, driver->stream_destroy(stream), "cuStreamDestroy");
  return 0;
}
