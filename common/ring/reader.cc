#include "common/ring/reader.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <vector>

#include "common/ring/futex.h"
#include "common/ring/geometry.h"

namespace headrace::ring {

namespace {

// Copies words that the loader may be writing at the same time, in order before whatever is read after.
void CopyShared(void* to, const void* from, size_t bytes) {
  auto* words = static_cast<uint64_t*>(to);
  const auto* shared = static_cast<const uint64_t*>(from);
  for (size_t i = 0; i < bytes / sizeof(uint64_t); ++i) words[i] = __atomic_load_n(shared + i, __ATOMIC_ACQUIRE);
}

}  // namespace

struct RingReader::Impl {
  // The batch in a slot: copied out of the ring when it is read, since its descriptor may be used anew while it is
  // held.
  struct Record {
    SlotView view;                       // its slot, data and extents are constant after Attach
    ComponentExtent* extents = nullptr;  // what the view shows, to be written
    uint64_t seeks = 0;                  // SlotDescriptor's
    bool held = false;                   // by the trainer; written by whoever has the batch

    void Describe(uint64_t batch, const SlotDescriptor& descriptor) {
      view.batch = batch;
      view.epoch = descriptor.epoch;
      view.step = descriptor.step;
      view.rows = descriptor.rows;
      view.flags = static_cast<uint32_t>(descriptor.flags);
      view.device_ring = descriptor.device_ring;
      seeks = descriptor.seeks;
    }
  };

  // Constant after Attach.
  uint8_t* base = nullptr;
  bool mapped = false;
  Geometry geometry;

  std::vector<Record> records;           // by slot
  std::vector<ComponentExtent> extents;  // of all records

  // Of the thread that calls Next or Poll.
  std::vector<uint32_t> backlog;  // slots of batches that the client before us had not given back, newest first
  uint64_t cursor = 0;            // the batch that Next looks at after the backlog
  uint64_t published_seen = 0;    // saves reading the loader's cache line while batches are ready
  bool failed_seen = false;       // before published_seen: what was published before the failure is delivered first
  uint64_t epochs_over = 0;       // every epoch below this one is over
  uint64_t held_since_ns = 0;     // when all slots were first found held; 0: they are not
  uint64_t epoch = 0;             // of the newest iterator
  uint64_t seeks = 0;             // when it started
  std::function<void(uint32_t)> on_skip;

  std::mutex mutex;
  std::condition_variable freed;
  uint64_t released = 0;  // guarded by mutex; of header_->released, which we alone write

  ~Impl() {
    if (mapped) munmap(base, geometry.file_bytes);
  }

  RingHeader& header() { return *reinterpret_cast<RingHeader*>(base); }

  // What errors need is kept out of what runs for each batch: that is short, and its stack small.
  [[gnu::cold, gnu::noinline]] Status LoaderError() {
    char text[kMaxErrorBytes];
    std::memcpy(text, header().error, sizeof(text));
    text[kMaxErrorBytes - 1] = '\0';
    return ParseStatus(text);
  }

  // Finds the batches published and not given back, for the backlog. Errors: Corrupt.
  Status TakeStock() {
    const uint64_t slot_count = geometry.slot_count;
    const uint64_t published = header().published.load(std::memory_order_acquire);
    released = header().released.load(std::memory_order_relaxed);
    cursor = published_seen = published;
    extents.resize(slot_count * geometry.component_count);
    records.resize(slot_count);
    for (uint64_t slot = 0; slot < slot_count; ++slot) {
      Record& record = records[slot];
      record.extents = extents.data() + slot * geometry.component_count;
      record.view.slot = static_cast<uint32_t>(slot);
      record.view.data = geometry.slot(base, slot);
      record.view.extents = {record.extents, geometry.component_count};
    }

    // The loader's slots: given back, and not yet used for one of the batches published.
    std::vector<bool> free(slot_count);
    for (uint64_t batch = published; batch < released + slot_count; ++batch) {
      const uint64_t slot = batch < slot_count ? batch : *geometry.free_slot(base, batch - slot_count);
      if (slot >= slot_count || free[slot]) {
        return Corrupt("ring: slot " + std::to_string(slot) + " of " + std::to_string(slot_count) +
                       " was given back, which is not there or was so before");
      }
      free[slot] = true;
    }
    // The newest batch of each other slot, if its descriptor is still its own.
    std::vector<bool> known(slot_count);
    const uint64_t oldest = published > slot_count ? published - slot_count : 0;
    for (uint64_t batch = published; batch-- > oldest;) {
      SlotDescriptor descriptor;
      std::vector<ComponentExtent> copy(geometry.component_count);
      CopyShared(&descriptor, geometry.descriptor(base, batch), sizeof(descriptor));
      CopyShared(copy.data(), geometry.extents(base, batch), copy.size() * sizeof(ComponentExtent));
      // Batch + slot_count has the same descriptor: the loader may write it once all before are published and a slot is
      // there for it.
      const bool own = released <= batch || header().published.load(std::memory_order_acquire) < batch + slot_count;
      const uint64_t slot = descriptor.slot;
      if (!own || slot >= slot_count || free[slot] || known[slot]) continue;
      known[slot] = true;
      records[slot].Describe(batch, descriptor);
      std::copy(copy.begin(), copy.end(), records[slot].extents);
      backlog.push_back(static_cast<uint32_t>(slot));
    }
    for (uint32_t slot = 0; slot < slot_count; ++slot) {
      if (!free[slot] && !known[slot]) GiveBack(slot);
    }
    return {};
  }

  [[gnu::cold, gnu::noinline]] Status BadCount(uint64_t published) const {
    return Corrupt("ring header: published is " + std::to_string(published) + " where the reader is at " +
                   std::to_string(cursor) + " of " + std::to_string(geometry.slot_count) + " slots");
  }
  [[gnu::cold, gnu::noinline]] Status BadSlot(uint64_t slot) const {
    return Corrupt("ring: batch " + std::to_string(cursor) + " lies in slot " + std::to_string(slot) + " of " +
                   std::to_string(geometry.slot_count) + ", which is held or not there");
  }

  // The record of the next batch, filled in; null if none is ready. Errors: Corrupt.
  [[gnu::hot]] Result<Record*> Front() {
    if (!backlog.empty()) [[unlikely]]
      return &records[backlog.back()];
    if (cursor == published_seen) {
      failed_seen = header().failed.load(std::memory_order_acquire) != 0;
      const uint64_t published = header().published.load(std::memory_order_acquire);
      if (published - cursor > geometry.slot_count) {
        return BadCount(published);
      }
      published_seen = published;
      if (cursor == published) return nullptr;
    }
    const SlotDescriptor& descriptor = *geometry.descriptor(base, cursor);
    // Read once: what is checked is what is used, whoever writes there meanwhile.
    const uint64_t slot = __atomic_load_n(&descriptor.slot, __ATOMIC_RELAXED);
    if (slot >= geometry.slot_count || records[slot].held) {
      return BadSlot(slot);
    }
    Record& record = records[slot];
    record.Describe(cursor, descriptor);
    const ComponentExtent* const shared = geometry.extents(base, cursor);
    for (uint32_t i = 0; i < geometry.component_count; ++i) record.extents[i] = shared[i];
    return &record;
  }

  // Whether the batch was published for an older iterator.
  bool Stale(const Record& record) const { return record.seeks < seeks || record.view.epoch < epoch; }

  // Tells the loader where the newest iterator starts, and releases what was published for older ones.
  void Request(uint64_t wanted_epoch, const Position* seek) {
    RingHeader& to = header();
    // A client that was killed in the middle may have left it odd.
    const uint64_t version = to.request_version.load(std::memory_order_relaxed) | 1;
    to.request_version.store(version, std::memory_order_seq_cst);
    to.iterations.store(to.iterations.load(std::memory_order_relaxed) + 1, std::memory_order_seq_cst);
    to.epoch.store(wanted_epoch, std::memory_order_seq_cst);
    if (seek != nullptr) {
      to.seeks.store(to.seeks.load(std::memory_order_relaxed) + 1, std::memory_order_seq_cst);
      to.start_epoch.store(seek->epoch, std::memory_order_seq_cst);
      to.start_step.store(seek->step, std::memory_order_seq_cst);
      to.start_seed.store(seek->seed, std::memory_order_seq_cst);
      epochs_over = 0;
    }
    to.request_version.store(version + 1, std::memory_order_seq_cst);
    epoch = wanted_epoch;
    seeks = to.seeks.load(std::memory_order_relaxed);
    while (true) {
      auto record = Front();
      if (!record.ok() || *record == nullptr || !Stale(**record)) break;  // Next reports the error
      Skip(**record);
    }
    // Also where nothing was released: the loader may wait to publish a step of the old epoch.
    WakeIfWaiting(to.loader_waiting, to.released);
  }

  // Moves on behind Front's batch.
  void Advance() {
    if (backlog.empty()) {
      cursor += 1;
    } else {
      backlog.pop_back();
    }
  }

  void Skip(const Record& record) {
    Advance();
    if (on_skip) on_skip(record.view.slot);
    GiveBack(record.view.slot);
  }

  bool FitsItsSlot(const Record& record) const {
    for (uint32_t i = 0; i < geometry.component_count; ++i) {
      if (!FitsSlot(record.extents[i], geometry)) [[unlikely]]
        return false;
    }
    return true;
  }
  // Corrupt, of a batch that does not fit its slot.
  [[gnu::cold, gnu::noinline]] Status DoesNotFit(const Record& record) const {
    const auto fits = [this](const ComponentExtent& extent) { return FitsSlot(extent, geometry); };
    const auto misfit = std::find_if_not(record.view.extents.begin(), record.view.extents.end(), fits);
    return ring::DoesNotFit(*misfit, geometry)
        .WithContext("ring: batch " + std::to_string(record.view.batch) + ", component " +
                     std::to_string(misfit - record.view.extents.begin()));
  }

  void GiveBack(uint32_t slot) {
    {
      std::lock_guard lock(mutex);
      *geometry.free_slot(base, released) = slot;
      released += 1;
      header().released.store(released, std::memory_order_seq_cst);
    }
    freed.notify_all();
    WakeIfWaiting(header().loader_waiting, header().released);
  }

  // Slots given to the trainer (or skipped) and not given back. REQUIRES: mutex is held.
  bool AllHeld() const { return backlog.empty() && cursor - released >= geometry.slot_count; }

  // Whether every slot is held by the trainer, so that nothing can come. Waits for a release until `deadline_ns` or the
  // end of the grace period. Errors: Exhausted at the latter.
  Result<bool> WaitWhileAllHeld(uint64_t deadline_ns) {
    std::unique_lock lock(mutex);
    if (!AllHeld()) {
      held_since_ns = 0;
      return false;
    }
    uint64_t now = MonotonicNs();
    if (held_since_ns == 0) held_since_ns = now;
    const uint64_t grace_end = held_since_ns + uint64_t{kHeldGraceMs} * 1000000u;
    if (now >= grace_end) {
      return Exhausted("all " + std::to_string(geometry.slot_count) +
                       " batches of the ring are held by the trainer: release batches (in Python: drop the arrays that "
                       "look into them, or copy them), or raise spec.delivery.prefetchSteps");
    }
    uint64_t wait_ns = std::min(grace_end, deadline_ns) - std::min(now, deadline_ns);
    freed.wait_for(lock, std::chrono::nanoseconds(wait_ns), [&] { return !AllHeld(); });
    return true;
  }

  // While Next waits.
  struct Wait {
    int timeout_ms;
    int rounds = 0;
    uint64_t deadline_ns = 0;  // 0: not asked for yet
  };
  // Of a ring with nothing to read: spins at first, then sleeps for a while. Whether the time is over. Errors:
  // Exhausted. Apart from Next, which then is short where a batch is ready.
  [[gnu::noinline]] Result<bool> Await(Wait* wait) {
    if (wait->rounds++ < kSpinRounds && wait->timeout_ms != 0) {
      CpuRelax();
      return false;
    }
    RingHeader& shared = header();
    if (shared.batches_wanted.load(std::memory_order_relaxed) <= cursor) {
      shared.batches_wanted.store(cursor + 1, std::memory_order_seq_cst);
      WakeIfWaiting(shared.loader_waiting, shared.released);
    }
    const uint64_t now = MonotonicNs();
    uint64_t& deadline_ns = wait->deadline_ns;
    if (deadline_ns == 0) deadline_ns = now + static_cast<uint64_t>(std::max(wait->timeout_ms, 0)) * 1000000u;
    ASSIGN_OR_RETURN(const bool held, WaitWhileAllHeld(deadline_ns));
    if (now >= deadline_ns) return true;
    if (held) return false;
    const int left_ms = static_cast<int>((deadline_ns - now + 999999u) / 1000000u);
    shared.client_waiting.store(1, std::memory_order_seq_cst);
    if (shared.published.load(std::memory_order_seq_cst) == cursor) {
      FutexWait(shared.published, cursor, std::min(left_ms, kSleepSliceMs));
    }
    shared.client_waiting.store(0, std::memory_order_relaxed);
    Add(shared.trainer_wait_ns, MonotonicNs() - now);
    return false;
  }
};

RingReader::RingReader() : impl_(std::make_unique<Impl>()) {}

RingReader::~RingReader() {
  if (header_ != nullptr) header_->client_pid.store(0, std::memory_order_relaxed);
}

Result<std::unique_ptr<RingReader>> RingReader::Attach(int fd) {
  struct stat file {};
  if (fstat(fd, &file) != 0) return ErrnoStatus(errno, "reading the size of a ring");
  if (!S_ISREG(file.st_mode) || file.st_size < static_cast<off_t>(kPageBytes)) {
    return Corrupt("ring: the descriptor is not a file of at least " + std::to_string(kPageBytes) + " bytes");
  }
  size_t bytes = static_cast<size_t>(file.st_size);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return ErrnoStatus(errno, "mapping a ring of " + std::to_string(bytes) + " bytes");
  auto reader = Attach(static_cast<uint8_t*>(memory), bytes);
  if (!reader.ok()) {
    munmap(memory, bytes);
    return reader.status();
  }
  (*reader)->impl_->mapped = true;
  return reader;
}

Result<std::unique_ptr<RingReader>> RingReader::Attach(uint8_t* base, size_t bytes) {
  ASSIGN_OR_RETURN(Geometry geometry, CheckHeader(base, bytes));
  std::unique_ptr<RingReader> reader(new RingReader());
  Impl& impl = *reader->impl_;
  impl.base = base;
  impl.geometry = geometry;
  RETURN_IF_ERROR(impl.TakeStock());
  reader->header_ = &impl.header();
  reader->header_->client_waiting.store(0, std::memory_order_relaxed);
  reader->header_->client_pid.store(static_cast<uint32_t>(getpid()), std::memory_order_relaxed);
  return reader;
}

const Geometry& RingReader::geometry() const { return impl_->geometry; }
uint8_t* RingReader::base() const { return impl_->base; }
size_t RingReader::bytes() const { return impl_->geometry.file_bytes; }

void RingReader::OnSkip(std::function<void(uint32_t)> skip) { impl_->on_skip = std::move(skip); }

std::vector<bool> RingReader::LoadersSlots() const {
  std::vector<bool> loaders(impl_->geometry.slot_count, true);
  for (size_t slot = 0; slot < loaders.size(); ++slot) loaders[slot] = !impl_->records[slot].held;
  for (const uint32_t slot : impl_->backlog) loaders[slot] = false;
  const uint64_t published = header_->published.load(std::memory_order_acquire);
  const uint64_t unread = std::min(published - impl_->cursor, impl_->geometry.slot_count);
  for (uint64_t batch = impl_->cursor; batch < impl_->cursor + unread; ++batch) {
    const uint64_t slot = impl_->geometry.descriptor(impl_->base, batch)->slot;
    if (slot < loaders.size()) loaders[slot] = false;
  }
  return loaders;
}

uint64_t RingReader::next_epoch() const {
  return header_->iterations.load(std::memory_order_relaxed) == 0 ? 0
                                                                  : header_->epoch.load(std::memory_order_relaxed) + 1;
}

uint64_t RingReader::StartIteration(uint64_t at_least) {
  const uint64_t epoch = std::max(next_epoch(), at_least);
  impl_->Request(epoch, nullptr);
  return epoch;
}

void RingReader::StartIterationAt(const Position& start) { impl_->Request(start.epoch, &start); }

Result<RingReader::Outcome> RingReader::Next(uint64_t epoch, int timeout_ms, SlotView* view) {
  Impl::Wait wait{timeout_ms};
  while (true) {
    ASSIGN_OR_RETURN(const Outcome outcome, Poll(epoch, view));
    if (outcome != Outcome::kTimeout) [[likely]]
      return outcome;
    ASSIGN_OR_RETURN(const bool over, impl_->Await(&wait));
    if (over) return Outcome::kTimeout;
  }
}

Result<RingReader::Outcome> RingReader::Poll(uint64_t epoch, SlotView* view) {
  Impl& impl = *impl_;
  while (true) {
    if (epoch < impl.epochs_over || epoch != impl.epoch) [[unlikely]]
      return Outcome::kEndOfEpoch;
    ASSIGN_OR_RETURN(Impl::Record* const record, impl.Front());
    if (record == nullptr) [[unlikely]] {
      if (impl.failed_seen) return impl.LoaderError();
      return Outcome::kTimeout;
    }
    if (impl.Stale(*record)) [[unlikely]] {
      impl.Skip(*record);
      continue;
    }
    const bool is_end = (record->view.flags & kEndOfEpoch) != 0;
    if (is_end || record->view.epoch > epoch) [[unlikely]] {
      impl.epochs_over = epoch + 1;
      if (record->view.epoch == epoch) impl.Skip(*record);
      return Outcome::kEndOfEpoch;
    }
    if (!impl.FitsItsSlot(*record)) return impl.DoesNotFit(*record);
    impl.Advance();
    record->held = true;
    impl.held_since_ns = 0;
    Add(header_->batches_read, 1);
    *view = record->view;
    return Outcome::kBatch;
  }
}

void RingReader::Release(const SlotView& view) {
  if (view.slot >= impl_->records.size()) return;
  Impl::Record& record = impl_->records[view.slot];
  if (!record.held || record.view.batch != view.batch) return;
  record.held = false;
  impl_->GiveBack(view.slot);
}

}  // namespace headrace::ring
