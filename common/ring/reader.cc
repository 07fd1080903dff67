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

struct RingReader::Impl {
  // Constant after Attach.
  uint8_t* base = nullptr;
  bool mapped = false;
  Geometry geometry;

  // Of the thread that calls Next.
  uint64_t cursor = 0;          // the ticket that Next looks at next
  uint64_t published_seen = 0;  // saves reading the loader's cache line while batches are ready
  uint64_t epochs_over = 0;     // every epoch below this one is over
  uint64_t held_since_ns = 0;   // when all slots were first found held; 0: they are not

  std::mutex mutex;
  std::condition_variable freed;
  uint64_t released = 0;       // guarded by mutex; of header_->released, which we alone write
  std::vector<bool> returned;  // guarded by mutex; by slot: released, but an older one is not

  ~Impl() {
    if (mapped) munmap(base, geometry.file_bytes);
  }

  RingHeader& header() { return *reinterpret_cast<RingHeader*>(base); }

  Status LoaderError() {
    char text[kMaxErrorBytes];
    std::memcpy(text, header().error, sizeof(text));
    text[kMaxErrorBytes - 1] = '\0';
    return ParseStatus(text);
  }

  // True if a batch is ready at `cursor`. Errors: Corrupt.
  Result<bool> Ready() {
    if (cursor < published_seen) return true;
    uint64_t published = header().published.load(std::memory_order_acquire);
    if (published - cursor > geometry.slot_count) {
      return Corrupt("ring header: published is " + std::to_string(published) + " where the reader is at " +
                     std::to_string(cursor) + " of " + std::to_string(geometry.slot_count) + " slots");
    }
    published_seen = published;
    return cursor < published;
  }

  Status View(SlotView* view) {
    const SlotDescriptor descriptor = *geometry.descriptor(base, cursor);
    const ComponentExtent* extents = geometry.extents(base, cursor);
    for (uint32_t i = 0; i < geometry.component_count; ++i) {
      if (extents[i].offset > geometry.slot_stride || extents[i].bytes > geometry.slot_stride - extents[i].offset ||
          extents[i].offset % kTensorAlign != 0) {
        return Corrupt("ring: batch " + std::to_string(cursor) + ", component " + std::to_string(i) + ": " +
                       std::to_string(extents[i].bytes) + " bytes at " + std::to_string(extents[i].offset) +
                       " do not fit a slot of " + std::to_string(geometry.slot_stride));
      }
    }
    if (descriptor.inner_dims_count > 2) {
      return Corrupt("ring: batch " + std::to_string(cursor) + ": inner_dims_count is " +
                     std::to_string(descriptor.inner_dims_count) + ", want at most 2");
    }
    view->ticket = cursor;
    view->epoch = descriptor.epoch;
    view->step = descriptor.step;
    view->rows = descriptor.rows;
    view->flags = descriptor.flags;
    view->inner_dims = {geometry.descriptor(base, cursor)->inner_dims, descriptor.inner_dims_count};
    view->extents = {extents, geometry.component_count};
    view->data = geometry.slot(base, cursor);
    return {};
  }

  // Returns the slot at `cursor` unread.
  void Skip() {
    Return(cursor);
    cursor += 1;
  }

  void Return(uint64_t ticket) {
    {
      std::lock_guard lock(mutex);
      if (ticket - released >= geometry.slot_count) return;
      std::vector<bool>::reference mark = returned[ticket % geometry.slot_count];
      if (mark) return;
      mark = true;
      if (ticket != released) return;
      while (returned[released % geometry.slot_count]) {
        returned[released % geometry.slot_count] = false;
        released += 1;
      }
      header().released.store(released, std::memory_order_seq_cst);
    }
    freed.notify_all();
    WakeIfWaiting(header().loader_waiting, header().released);
  }

  // Whether every slot is held by the trainer, so that nothing can come. Waits for a release until `deadline_ns` or the
  // end of the grace period. Errors: Exhausted at the latter.
  Result<bool> WaitWhileAllHeld(uint64_t deadline_ns) {
    std::unique_lock lock(mutex);
    if (cursor - released < geometry.slot_count) {
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
    freed.wait_for(lock, std::chrono::nanoseconds(wait_ns), [&] { return cursor - released < geometry.slot_count; });
    return true;
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
  impl.returned.resize(geometry.slot_count);
  reader->header_ = &impl.header();
  impl.released = reader->header_->released.load(std::memory_order_relaxed);
  impl.cursor = impl.released;
  impl.published_seen = impl.cursor;
  reader->header_->client_waiting.store(0, std::memory_order_relaxed);
  reader->header_->client_pid.store(static_cast<uint32_t>(getpid()), std::memory_order_relaxed);
  return reader;
}

uint8_t* RingReader::base() const { return impl_->base; }
size_t RingReader::bytes() const { return impl_->geometry.file_bytes; }

uint64_t RingReader::StartIteration() {
  const uint64_t epoch = header_->iterations.load(std::memory_order_relaxed);
  header_->iterations.store(epoch + 1, std::memory_order_seq_cst);
  while (true) {
    auto ready = impl_->Ready();
    if (!ready.ok() || !*ready) break;  // Next reports the error
    if (impl_->geometry.descriptor(impl_->base, impl_->cursor)->epoch >= epoch) break;
    impl_->Skip();
  }
  // Also where nothing was released: the loader may wait to publish a step of the old epoch.
  WakeIfWaiting(header_->loader_waiting, header_->released);
  return epoch;
}

Result<RingReader::Outcome> RingReader::Next(uint64_t epoch, int timeout_ms, SlotView* view) {
  Impl& impl = *impl_;
  uint64_t deadline_ns = 0;
  for (int round = 0;; ++round) {
    if (epoch < impl.epochs_over || epoch + 1 < header_->iterations.load(std::memory_order_relaxed)) {
      return Outcome::kEndOfEpoch;
    }
    // Read before `published`: what was published before the failure is delivered first.
    const bool failed = header_->failed.load(std::memory_order_acquire) != 0;
    ASSIGN_OR_RETURN(bool ready, impl.Ready());
    if (ready) {
      const SlotDescriptor* descriptor = impl.geometry.descriptor(impl.base, impl.cursor);
      if (descriptor->epoch < epoch) {
        impl.Skip();
        continue;
      }
      if (descriptor->epoch > epoch) {
        impl.epochs_over = epoch + 1;
        return Outcome::kEndOfEpoch;
      }
      if ((descriptor->flags & kFailed) != 0) return impl.LoaderError();
      if ((descriptor->flags & kEndOfEpoch) != 0) {
        impl.epochs_over = epoch + 1;
        impl.Skip();
        return Outcome::kEndOfEpoch;
      }
      RETURN_IF_ERROR(impl.View(view));
      impl.cursor += 1;
      impl.held_since_ns = 0;
      Add(header_->batches_read, 1);
      return Outcome::kBatch;
    }
    if (failed) return impl.LoaderError();
    if (round < kSpinRounds && timeout_ms != 0) {
      CpuRelax();
      continue;
    }
    const uint64_t now = MonotonicNs();
    if (deadline_ns == 0) deadline_ns = now + static_cast<uint64_t>(std::max(timeout_ms, 0)) * 1000000u;
    ASSIGN_OR_RETURN(bool held, impl.WaitWhileAllHeld(deadline_ns));
    if (now >= deadline_ns) return Outcome::kTimeout;
    if (held) continue;
    const int left_ms = static_cast<int>((deadline_ns - now + 999999u) / 1000000u);
    header_->client_waiting.store(1, std::memory_order_seq_cst);
    if (header_->published.load(std::memory_order_seq_cst) == impl.cursor) {
      FutexWait(header_->published, impl.cursor, std::min(left_ms, kSleepSliceMs));
    }
    header_->client_waiting.store(0, std::memory_order_relaxed);
    Add(header_->trainer_wait_ns, MonotonicNs() - now);
  }
}

void RingReader::Release(uint64_t ticket) { impl_->Return(ticket); }

}  // namespace headrace::ring
