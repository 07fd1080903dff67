#include "common/ring/writer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <deque>
#include <new>
#include <optional>

#include "common/ring/futex.h"
#include "common/ring/geometry.h"

namespace headrace::ring {
namespace {

// Reserves memory for the file now. Errors: Exhausted with both sizes.
Status Allocate(int fd, const std::string& path, uint64_t bytes) {
  int error = posix_fallocate(fd, 0, static_cast<off_t>(bytes));
  if (error == 0) return {};
  if (error != ENOSPC && error != EFBIG) return ErrnoStatus(error, "reserving memory for ring " + path);
  struct statvfs volume {};
  uint64_t available = fstatvfs(fd, &volume) == 0 ? volume.f_bavail * volume.f_frsize : 0;
  // What the failed call did get is freed with the file, so it counts as available.
  struct stat file {};
  if (fstat(fd, &file) == 0) available += static_cast<uint64_t>(file.st_blocks) * 512;
  return Exhausted("ring " + path + " needs " + std::to_string(bytes) + " bytes, its volume has " +
                   std::to_string(available) +
                   " left: raise the sizeLimit of the emptyDir that holds the rings, or lower "
                   "spec.delivery.prefetchSteps or the batch size");
}

}  // namespace

struct RingWriter::Impl {
  int fd = -1;
  uint8_t* base = nullptr;
  Geometry geometry;
  uint64_t published = 0;         // of header_->published, which we alone write
  std::deque<uint64_t> reserved;  // slots, in the order of the batches that they will hold
  uint64_t next_epoch = 0;
  uint64_t next_step = 0;
  uint64_t last_seed = 0;
  uint64_t seeks_followed = 0;
  uint64_t epoch_seen = 0;  // that the client asked for
  std::vector<bool> clients_slots;
  std::vector<std::vector<ComponentExtent>> clients_extents;  // by slot

  // What the client asks for.
  struct Request {
    uint64_t epoch = 0;
    uint64_t seeks = 0;
    Position start;
  };

  ~Impl() {
    if (base != nullptr) munmap(base, geometry.file_bytes);
    if (fd >= 0) close(fd);
  }

  Status Map() {
    void* memory = mmap(nullptr, geometry.file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) return ErrnoStatus(errno, "mapping a ring");
    base = static_cast<uint8_t*>(memory);
    return {};
  }

  // All but those given back and not published again.
  void FindClientsSlots() {
    clients_slots.assign(geometry.slot_count, published > 0);
    const auto& header = *reinterpret_cast<const RingHeader*>(base);
    const uint64_t released = header.released.load(std::memory_order_acquire);
    for (uint64_t batch = published; batch < released + geometry.slot_count; ++batch) {
      const uint64_t slot =
          batch < geometry.slot_count ? batch : *geometry.free_slot(base, batch - geometry.slot_count);
      if (slot < geometry.slot_count) clients_slots[slot] = false;
    }
    FindClientsExtents(released);
  }

  // Of those whose descriptor is still their own: see RingReader::Impl::TakeStock, of which this is the other side.
  void FindClientsExtents(uint64_t released) {
    clients_extents.assign(geometry.slot_count, {});
    const auto fits = [this](const ComponentExtent& extent) { return FitsSlot(extent, geometry); };
    const uint64_t oldest = published > geometry.slot_count ? published - geometry.slot_count : 0;
    for (uint64_t batch = oldest; batch < published; ++batch) {
      const uint64_t slot = geometry.descriptor(base, batch)->slot;
      const bool own = released <= batch || published < batch + geometry.slot_count;
      if (!own || slot >= geometry.slot_count || !clients_slots[slot]) continue;
      const ComponentExtent* const from = geometry.extents(base, batch);
      std::vector<ComponentExtent> extents(from, from + geometry.component_count);
      if (!std::all_of(extents.begin(), extents.end(), fits)) extents.clear();
      clients_extents[slot] = std::move(extents);
    }
  }

  void SetNext(const SlotDescriptor& last) {
    bool end = (last.flags & kEndOfEpoch) != 0;
    next_epoch = end ? last.epoch + 1 : last.epoch;
    next_step = end ? 0 : last.step + 1;
    last_seed = last.seed;
  }

  // Sleeps until the client wakes us, unless `changed` says that what we wait for has come.
  template <typename Changed>
  static void SleepUnless(RingHeader& header, Changed changed) {
    const uint64_t released = header.released.load(std::memory_order_seq_cst);
    header.loader_waiting.store(1, std::memory_order_seq_cst);
    if (!changed()) FutexWait(header.released, released, kSleepSliceMs);
    header.loader_waiting.store(0, std::memory_order_relaxed);
  }

  // Nothing while the client is writing it.
  static std::optional<Request> ReadRequest(const RingHeader& header) {
    const uint64_t version = header.request_version.load(std::memory_order_seq_cst);
    Request request;
    request.epoch = header.epoch.load(std::memory_order_seq_cst);
    request.seeks = header.seeks.load(std::memory_order_seq_cst);
    request.start = {header.start_epoch.load(std::memory_order_seq_cst),
                     header.start_step.load(std::memory_order_seq_cst),
                     header.start_seed.load(std::memory_order_seq_cst)};
    if (version % 2 != 0 || header.request_version.load(std::memory_order_seq_cst) != version) return {};
    return request;
  }
};

namespace {

bool SameRun(const RingHeader& header, const RingGeometry& wanted) {
  return wanted.plan_hash == header.plan_hash && header.num_workers == wanted.num_workers &&
         header.worker_index == wanted.worker_index && header.replicas_per_worker == wanted.replicas_per_worker &&
         header.replica == wanted.replica;
}

}  // namespace

RingWriter::RingWriter() : impl_(std::make_unique<Impl>()) {}
RingWriter::~RingWriter() = default;

Result<std::unique_ptr<RingWriter>> RingWriter::Open(const std::string& path, const RingGeometry& geometry) {
  ASSIGN_OR_RETURN(Geometry layout, MakeGeometry(geometry.slot_count, geometry.slot_bytes, geometry.component_count,
                                                 geometry.device_slot_bytes));
  if (geometry.plan_hash.size() >= sizeof(RingHeader::plan_hash)) {
    return InvalidArgument("ring " + path + ": plan hash '" + geometry.plan_hash + "' is longer than " +
                           std::to_string(sizeof(RingHeader::plan_hash) - 1) + " characters");
  }
  std::unique_ptr<RingWriter> writer(new RingWriter());
  Impl& impl = *writer->impl_;
  impl.geometry = layout;

  // Take-over: the ring of this very plan and geometry, left by a loader before us.
  impl.fd = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  struct stat file {};
  if (impl.fd >= 0 && fstat(impl.fd, &file) == 0 && S_ISREG(file.st_mode) &&
      static_cast<uint64_t>(file.st_size) == layout.file_bytes) {
    RETURN_IF_ERROR(Allocate(impl.fd, path, layout.file_bytes));
    RETURN_IF_ERROR(impl.Map());
    auto found = CheckHeader(impl.base, layout.file_bytes);
    auto& header = *reinterpret_cast<RingHeader*>(impl.base);
    if (found.ok() && *found == layout && SameRun(header, geometry)) {
      header.generation += 1;
      header.failed.store(0, std::memory_order_release);
      header.loader_waiting.store(0, std::memory_order_relaxed);
      impl.published = header.published.load(std::memory_order_relaxed);
      if (impl.published > 0) {
        const SlotDescriptor& last = *layout.descriptor(impl.base, impl.published - 1);
        impl.SetNext(last);
        impl.seeks_followed = last.seeks;
        // A seek back may have left the ring before the epoch that the client asked for: it is no news.
        impl.epoch_seen = std::min(header.epoch.load(std::memory_order_relaxed), impl.next_epoch);
      }
      impl.FindClientsSlots();
      writer->header_ = &header;
      return writer;
    }
    munmap(impl.base, layout.file_bytes);
    impl.base = nullptr;
  }
  if (impl.fd >= 0) close(impl.fd);

  // A new file under a name of its own and then renamed: nobody ever opens a ring without its header. The old file goes
  // first, to make room; who has it mapped keeps it.
  if (unlink(path.c_str()) != 0 && errno != ENOENT) return ErrnoStatus(errno, "removing the old ring " + path);
  const std::string fresh = path + ".new";
  unlink(fresh.c_str());
  impl.fd = open(fresh.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (impl.fd < 0) return ErrnoStatus(errno, "creating ring " + fresh);
  // Loader and trainer run as different users of one pod; the directory says who may reach the file.
  fchmod(impl.fd, 0666);
  Status status = Allocate(impl.fd, path, layout.file_bytes);
  if (status.ok()) status = impl.Map();
  if (!status.ok()) {
    unlink(fresh.c_str());
    return status;
  }
  auto* header = new (impl.base) RingHeader{};
  std::memcpy(header->magic, kMagic, sizeof(kMagic));
  header->version = kLayoutVersion;
  header->component_count = layout.component_count;
  std::memcpy(header->plan_hash, geometry.plan_hash.c_str(), geometry.plan_hash.size() + 1);
  header->generation = 1;
  header->file_bytes = layout.file_bytes;
  header->slot_count = layout.slot_count;
  header->slot_stride = layout.slot_stride;
  header->descriptor_offset = layout.descriptor_offset;
  header->descriptor_stride = layout.descriptor_stride;
  header->data_offset = layout.data_offset;
  header->device_slot_stride = layout.device_slot_stride;
  header->num_workers = geometry.num_workers;
  header->worker_index = geometry.worker_index;
  header->replicas_per_worker = geometry.replicas_per_worker;
  header->replica = geometry.replica;
  if (rename(fresh.c_str(), path.c_str()) != 0) {
    status = ErrnoStatus(errno, "renaming " + fresh + " to " + path);
    unlink(fresh.c_str());
    return status;
  }
  impl.FindClientsSlots();
  writer->header_ = header;
  return writer;
}

const Geometry& RingWriter::geometry() const { return impl_->geometry; }
uint8_t* RingWriter::base() const { return impl_->base; }
const std::vector<bool>& RingWriter::clients_slots() const { return impl_->clients_slots; }
std::span<const ComponentExtent> RingWriter::clients_extents(uint64_t slot) const {
  return impl_->clients_extents[slot];
}
uint64_t RingWriter::slot_bytes() const { return impl_->geometry.slot_stride; }
uint64_t RingWriter::next_epoch() const { return impl_->next_epoch; }
uint64_t RingWriter::next_step() const { return impl_->next_step; }
int RingWriter::fd() const { return impl_->fd; }

uint64_t RingWriter::seed() const { return impl_->last_seed; }

std::optional<Position> RingWriter::TakeSeek() {
  const std::optional<Impl::Request> request = impl_->ReadRequest(*header_);
  if (!request || request->seeks == impl_->seeks_followed) return {};
  impl_->seeks_followed = request->seeks;
  impl_->epoch_seen = request->start.epoch;  // an iterator over a later epoch may have been started since
  impl_->next_epoch = request->start.epoch;
  impl_->next_step = request->start.step;
  return request->start;
}

std::optional<uint64_t> RingWriter::TakeNewerEpoch() {
  const std::optional<Impl::Request> request = impl_->ReadRequest(*header_);
  if (!request || request->epoch <= impl_->epoch_seen) return {};
  impl_->epoch_seen = request->epoch;
  return request->epoch;
}

uint64_t RingWriter::occupancy() const {
  uint64_t released = header_->released.load(std::memory_order_acquire);
  return header_->published.load(std::memory_order_acquire) - released;
}

Result<uint64_t> RingWriter::FreeSlots(uint64_t epoch) const {
  const auto request = impl_->ReadRequest(*header_);
  if (request && (request->epoch > epoch || request->seeks != impl_->seeks_followed)) {
    return Cancelled("the client reads epoch " + std::to_string(request->epoch) + ", not epoch " +
                     std::to_string(epoch));
  }
  const uint64_t released = header_->released.load(std::memory_order_seq_cst);
  const uint64_t used = impl_->published - released;
  if (used > impl_->geometry.slot_count) {
    return Corrupt("ring header: the client wrote released=" + std::to_string(released) + " where published is " +
                   std::to_string(impl_->published));
  }
  return impl_->geometry.slot_count - used - impl_->reserved.size();
}

Result<uint8_t*> RingWriter::TryReserve(uint64_t epoch) {
  ASSIGN_OR_RETURN(const uint64_t free_slots, FreeSlots(epoch));
  if (free_slots == 0) return static_cast<uint8_t*>(nullptr);
  const uint64_t slot_count = impl_->geometry.slot_count;
  const uint64_t batch = impl_->published + impl_->reserved.size();
  uint64_t slot = batch;
  if (slot >= slot_count) slot = *impl_->geometry.free_slot(impl_->base, batch - slot_count);
  if (slot >= slot_count) {
    return Corrupt("ring: the client gave back slot " + std::to_string(slot) + " of " + std::to_string(slot_count));
  }
  impl_->reserved.push_back(slot);
  return impl_->geometry.slot(impl_->base, slot);
}

void RingWriter::AwaitRoom(const std::atomic<bool>& stop, uint64_t epoch) {
  const auto has_come = [&] {
    const Result<uint64_t> free_slots = FreeSlots(epoch);
    return !free_slots.ok() || *free_slots > 0;
  };
  for (int round = 0; round < kSpinRounds; ++round) {
    if (has_come()) return;
    CpuRelax();
  }
  // Counted slice by slice: a trainer that is slow is to be seen while it is.
  uint64_t counted = MonotonicNs();
  while (!stop.load(std::memory_order_relaxed) && !has_come()) {
    impl_->SleepUnless(*header_, has_come);
    const uint64_t now = MonotonicNs();
    Add(header_->loader_wait_ns, now - counted);
    counted = now;
  }
}

Result<uint8_t*> RingWriter::Reserve(const std::atomic<bool>& stop, uint64_t epoch) {
  while (!stop.load(std::memory_order_relaxed)) {
    ASSIGN_OR_RETURN(uint8_t* const slot, TryReserve(epoch));
    if (slot != nullptr) return slot;
    AwaitRoom(stop, epoch);
  }
  return Cancelled("asked to stop");
}

void RingWriter::Unreserve() { impl_->reserved.clear(); }

bool RingWriter::Demanded() const { return header_->batches_wanted.load(std::memory_order_seq_cst) > impl_->published; }

void RingWriter::AwaitClient() {
  const uint64_t version = header_->request_version.load(std::memory_order_seq_cst);
  impl_->SleepUnless(*header_,
                     [&] { return Demanded() || header_->request_version.load(std::memory_order_seq_cst) != version; });
}

void RingWriter::Publish(const SlotDescriptor& descriptor, std::span<const ComponentExtent> extents) {
  assert(!impl_->reserved.empty());
  assert(extents.empty() || extents.size() == impl_->geometry.component_count);
  const uint64_t batch = impl_->published;
  SlotDescriptor* header = impl_->geometry.descriptor(impl_->base, batch);
  *header = descriptor;
  header->slot = impl_->reserved.front();
  header->seeks = impl_->seeks_followed;
  impl_->reserved.pop_front();
  ComponentExtent* to = impl_->geometry.extents(impl_->base, batch);
  for (uint32_t i = 0; i < impl_->geometry.component_count; ++i) {
    to[i] = i < extents.size() ? extents[i] : ComponentExtent{};
  }
  impl_->SetNext(descriptor);
  impl_->published = batch + 1;
  header_->published.store(batch + 1, std::memory_order_seq_cst);
  WakeIfWaiting(header_->client_waiting, header_->published);
}

void RingWriter::Fail(const Status& error) {
  if (header_->failed.load(std::memory_order_relaxed) != 0) return;
  std::string text = error.ToString();
  size_t length = std::min(text.size(), kMaxErrorBytes - 1);
  std::memcpy(header_->error, text.data(), length);
  header_->error[length] = '\0';
  header_->failed.store(1, std::memory_order_seq_cst);
  WakeIfWaiting(header_->client_waiting, header_->published);
}

}  // namespace headrace::ring
