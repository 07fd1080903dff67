#include "client/connection.h"

#include <poll.h>
#include <pthread.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "client/batch.h"

namespace headrace::client {
namespace {

constexpr int kReplyWaitMs = 50;
constexpr int kRetryMs = 20;
// A trainer that was killed a moment ago may still count as the replica's reader; one that runs will go on doing so.
constexpr int64_t kConflictMs = 3000;
constexpr int kWatchMs = 100;  // how often a wait for a batch looks at the loader's socket

uint64_t NowMs() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

std::string Seconds(int64_t ms) {
  std::string text = std::to_string(ms / 1000);
  if (ms % 1000 != 0) text += "." + std::to_string(ms % 1000 / 100);
  return text + " s";
}

std::atomic<uint64_t> forks{0};

// Attaches, waiting for the loader to start.
Result<LoaderSocket::Attachment> WaitForLoader(LoaderSocket& socket, const ConnectPolicy& policy) {
  const uint64_t start = NowMs();
  while (true) {
    if (policy.interrupted && policy.interrupted()) return Cancelled("interrupted while connecting to the loader");
    ASSIGN_OR_RETURN(auto attachment, socket.Attach(kReplyWaitMs));
    if (attachment) return std::move(*attachment);
    const auto waited_ms = static_cast<int64_t>(NowMs() - start);
    if (socket.last_error().code() == Code::kConflict && waited_ms >= kConflictMs) return socket.last_error();
    if (waited_ms >= policy.timeout_ms) {
      return socket.last_error().WithContext("no loader within " + Seconds(policy.timeout_ms));
    }
    poll(nullptr, 0, kRetryMs);
  }
}

}  // namespace

Result<ring::HandshakeReply> AskLoader(const ConnectPolicy& policy) {
  LoaderSocket socket(policy.directory, {});
  ASSIGN_OR_RETURN(auto attachment, WaitForLoader(socket, policy));
  return std::move(attachment.reply);
}

uint64_t Connection::Forks() { return forks.load(std::memory_order_relaxed); }

Connection::Connection(const ConnectPolicy& policy, int replica, const Destination& to)
    : policy_(policy),
      replica_(replica),
      socket_(policy.directory, {replica, to.reason, to.memory == MemoryKind::kDevice}),
      to_(to) {}

Result<std::shared_ptr<Connection>> Connection::Open(const ConnectPolicy& policy, int replica, const Destination& to) {
  // Not the process id, which is a system call for each batch that is freed.
  static const int counted = pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1); });
  if (counted != 0) return ErrnoStatus(counted, "having the forks of this process counted");
  std::shared_ptr<Connection> connection(new Connection(policy, replica, to));
  ASSIGN_OR_RETURN(auto attachment, WaitForLoader(connection->socket_, policy));
  connection->reply_ = attachment.reply;
  struct stat file {};
  auto reader = ring::RingReader::Attach(attachment.ring.get());
  const bool known = fstat(attachment.ring.get(), &file) == 0;
  if (!reader.ok()) return reader.status();
  if (!known) return Internal("a ring's descriptor cannot be read");
  connection->reader_ = std::move(*reader);
  connection->ring_device_ = file.st_dev;
  connection->ring_inode_ = file.st_ino;
  for (const TensorSpec& spec : connection->reply_.element_spec) {
    const bool bytes = spec.dtype == DType::kString;
    connection->components_.push_back({spec, bytes ? 1 : static_cast<int64_t>(DTypeSize(spec.dtype))});
  }
  const ring::RingHeader& header = connection->reader_->header();
  if (header.component_count != connection->components_.size() || header.replica != static_cast<uint32_t>(replica)) {
    return Internal("the loader's ring is of replica " + std::to_string(header.replica) + " with " +
                    std::to_string(header.component_count) + " components, want replica " + std::to_string(replica) +
                    " with " + std::to_string(connection->components_.size()));
  }
  if (to.gpu) {
    const bool mapped = to.memory == MemoryKind::kDevice;
    RETURN_IF_ERROR(mapped ? connection->MapDeviceSlots(attachment) : connection->OpenBuffers(),
                    "replica " + std::to_string(replica) + " to GPU " + std::to_string(*to.gpu));
  }
  return connection;
}

Connection::~Connection() {
  delete TakeSpare();
  if (!IsForked()) return;
  // There is no thread to join, no call of CUDA that may be made, and the ring has its reader still.
  static_cast<void>(reader_.release());
  static_cast<void>(prefetch_.release());
  static_cast<void>(buffers_.release());
}

Status Connection::CheckProcess() const {
  if (!IsForked()) return {};
  return Unavailable("replica " + std::to_string(replica_) +
                     ": this process was forked from the one that connected, which reads the ring: start it by spawn, "
                     "and connect in it");
}

Status Connection::OpenBuffers() {
  const ring::RingHeader& header = reader_->header();
  DeviceBuffers::Options options;
  options.gpu = *to_.gpu;
  options.ring = {reader_->base(), reader_->bytes()};
  options.buffer_bytes = header.slot_stride;
  options.count = policy_.device_batches == 0 ? kDeviceBatches : policy_.device_batches;
  // A batch with a part that stays in the ring keeps its slot as well as its buffer.
  const bool keeps_slots = std::any_of(components_.begin(), components_.end(), [](const Component& component) {
    return component.spec.dtype == DType::kString || component.spec.ragged;
  });
  if (keeps_slots) options.count = std::min<size_t>(options.count, header.slot_count);
  ASSIGN_OR_RETURN(buffers_, DeviceBuffers::Create(options));
  return {};
}

Status Connection::MapDeviceSlots(const LoaderSocket::Attachment& attachment) {
  const ring::RingHeader& header = reader_->header();
  DeviceSlots::Options options;
  options.gpu = *to_.gpu;
  options.memory_fd = attachment.device_memory.get();
  options.handover_fd = attachment.handover.get();
  options.slot_count = header.slot_count;
  options.slot_stride = reader_->geometry().device_stride();
  options.generation = attachment.reply.device_rings[static_cast<size_t>(replica_)].generation;
  ASSIGN_OR_RETURN(std::shared_ptr<DeviceSlots> slots, DeviceSlots::Map(options));
  {
    const std::lock_guard lock(slots_mutex_);
    // What has gone back in the ring without a word here, from a trainer before us that was killed or by us while this
    // loader was not there, the loader waits for, and does nothing with until it hears.
    std::vector<bool> waited_for;
    for (uint64_t slot = 0; slot < options.slot_count; ++slot) waited_for.push_back(!slots->IsDrained(slot));
    const std::vector<bool> loaders = reader_->LoadersSlots();
    for (uint64_t slot = 0; slot < options.slot_count; ++slot) {
      if (waited_for[slot] && loaders[slot]) slots->Drain(slot);
    }
    device_slots_.swap(slots);
  }
  reader_->OnSkip([this](uint32_t slot) { device_slots_->Drain(slot); });
  return {};
}

void Connection::LetGo() {
  iterating_ = false;
  if (headrace_batch* const unread = prepared_.exchange(nullptr)) {
    reader_->Release(unread->view());
    headrace_batch::Drop(unread);
  }
  prefetch_.reset();
  if (early_) ReleaseDeviceSlot({*early_, nullptr, device_slots_}, {});
  early_.reset();
}

uint64_t Connection::StartIteration(uint64_t epoch) {
  const std::lock_guard lock(reading_);
  LetGo();
  newest_epoch_ = reader_->StartIteration(epoch);
  return Started();
}

uint64_t Connection::StartIterationAt(const ring::Position& start) {
  const std::lock_guard lock(reading_);
  LetGo();
  newest_epoch_ = start.epoch;
  reader_->StartIterationAt(start);
  return Started();
}

uint64_t Connection::Started() {
  StartPrefetch();
  iterating_ = true;
  return ++newest_iterator_;
}

void Connection::EndIteration(uint64_t iterator) {
  if (to_.gpu) return;  // nothing is prepared for it; what its thread has begun ends with the connection
  if (IsForked() || !IsNewest(iterator)) return;  // somebody may be waiting in Next
  const std::lock_guard lock(reading_);
  if (IsNewest(iterator)) LetGo();
}

void Connection::StartPrefetch() {
  if (buffers_ == nullptr) return;
  Prefetch::Ring ring;
  ring.next = [this, epoch = newest_epoch_](int timeout_ms, ring::SlotView* view) {
    return NextInRing(epoch, timeout_ms, view);
  };
  ring.release = [this](const ring::SlotView& view) { reader_->Release(view); };
  const auto ahead = reply_.on_demand ? Prefetch::Ahead::kOnDemand : Prefetch::Ahead::kAsBuffersAllow;
  prefetch_ = std::make_unique<Prefetch>(buffers_.get(), std::move(ring), ahead);
}

Status Connection::Superseded() const {
  return InvalidArgument("replica " + std::to_string(replica_) +
                         ": this iterator was ended by the newer one, of epoch " + std::to_string(newest_epoch_) +
                         ": a replica has one iterator at a time");
}

Result<ring::RingReader::Outcome> Connection::Next(uint64_t iterator, int64_t timeout_ms, headrace_batch** batch) {
  RETURN_IF_ERROR(CheckProcess());
  const std::lock_guard lock(reading_);
  if (!IsNewest(iterator)) return Superseded();
  // Also where another thread has prepared one just now.
  if (headrace_batch* const prepared = TakePrepared(iterator)) {
    *batch = prepared;
    return ring::RingReader::Outcome::kBatch;
  }
  headrace_batch* const arriving = headrace_batch::New(shared_from_this());
  auto outcome = to_.gpu ? NextOnGpu(timeout_ms, &arriving->arrival)
                         : NextInRing(newest_epoch_, timeout_ms, &arriving->arrival.view);
  if (outcome.ok() && *outcome == ring::RingReader::Outcome::kBatch) {
    *batch = arriving;
  } else {
    headrace_batch::Drop(arriving);
  }
  return outcome;
}

void Connection::PrepareNext() {
  if (to_.gpu || IsForked()) return;  // to a GPU a thread of ours is ahead, or the loader
  const std::unique_lock lock(reading_, std::try_to_lock);
  if (!lock.owns_lock() || !iterating_ || prepared_ != nullptr) return;
  ring::SlotView view;
  const auto outcome = reader_->Poll(newest_epoch_, &view);
  if (!outcome.ok() || *outcome != ring::RingReader::Outcome::kBatch) return;
  headrace_batch* const batch = headrace_batch::New(shared_from_this());
  batch->arrival.view = view;
  // An error is told to who asks for the batch, and measures it again.
  batch->measured = batch->Measure().ok();
  prepared_.store(batch, std::memory_order_release);
}

Result<ring::RingReader::Outcome> Connection::NextOnGpu(int64_t timeout_ms, Arrival* arrival) {
  if (device_slots_ != nullptr) return NextInDeviceRing(timeout_ms, arrival);
  // After an error asking again may help, as it does without a GPU.
  if (prefetch_ == nullptr) StartPrefetch();
  auto outcome = prefetch_->Next(timeout_ms, arrival);
  if (!outcome.ok() && prefetch_->failed()) prefetch_.reset();
  return outcome;
}

void Connection::Release(const Arrival& arrival, std::span<const gpu::Stream> users) {
  if (IsForked()) return;
  if (arrival.device_slots != nullptr) return ReleaseDeviceSlot(arrival, users);
  if (arrival.has_slot && IsLastHolder(arrival.slot_holders)) reader_->Release(arrival.view);
  if (arrival.buffer != nullptr) buffers_->GiveBack(arrival.buffer, users);
}

// The slot goes back in the ring first, and the loader fills it when it hears from us: whoever is killed in between is
// succeeded by one who says it (MapDeviceSlots). The other way round a successor could get a batch that the loader
// takes for read.
void Connection::ReleaseDeviceSlot(const Arrival& arrival, std::span<const gpu::Stream> users) {
  const std::lock_guard lock(slots_mutex_);
  reader_->Release(arrival.view);
  const Status given_back = arrival.device_slots->GiveBack(arrival.view.slot, users);
  if (give_back_error_.ok()) give_back_error_ = given_back;
  // The slot's place in the memory of a loader that has come back since is nothing that a stream of ours knows.
  if (arrival.device_slots != device_slots_) device_slots_->Drain(arrival.view.slot);
}

Status Connection::UseOn(const Arrival& arrival, gpu::Stream stream) const {
  // What the loader brings is there before it is published.
  return arrival.buffer == nullptr ? Status() : buffers_->UseOn(*arrival.buffer, stream);
}

Status Connection::CopyToHost(const Arrival& arrival, ring::ByteRange range, gpu::Stream user, void* to) const {
  if (arrival.buffer == nullptr) return arrival.device_slots->CopyToHost(arrival.view.slot, range, user, to);
  return buffers_->CopyToHost(*arrival.buffer, range, user, to);
}

Result<ring::RingReader::Outcome> Connection::NextInDeviceRing(int64_t timeout_ms, Arrival* arrival) {
  using Outcome = ring::RingReader::Outcome;
  {
    const std::lock_guard lock(slots_mutex_);
    RETURN_IF_ERROR(give_back_error_);
  }
  const uint64_t start = NowMs();
  if (!early_) {
    ring::SlotView view;
    ASSIGN_OR_RETURN(const Outcome outcome, NextInRing(newest_epoch_, timeout_ms, &view));
    if (outcome != Outcome::kBatch) return outcome;
    early_ = view;
  }
  // A loader that came back has published it before we have noticed.
  while (early_->device_ring > device_slots_->generation()) {
    RETURN_IF_ERROR(CheckLoader());
    if (early_->device_ring <= device_slots_->generation()) break;
    if (timeout_ms >= 0 && static_cast<int64_t>(NowMs() - start) >= timeout_ms) return Outcome::kTimeout;
    poll(nullptr, 0, kRetryMs);
  }
  arrival->view = *early_;
  arrival->device_slots = device_slots_;
  if (reader_->geometry().device_slot_stride != 0) {
    arrival->extents.resize(early_->extents.size());
    std::transform(early_->extents.begin(), early_->extents.end(), arrival->extents.begin(), ring::InDeviceSlot);
    arrival->view.extents = arrival->extents;
  }
  early_.reset();
  return Outcome::kBatch;
}

Result<ring::RingReader::Outcome> Connection::NextInRing(uint64_t epoch, int64_t timeout_ms, ring::SlotView* view) {
  using Outcome = ring::RingReader::Outcome;
  uint64_t start = 0;
  int64_t left_ms = timeout_ms < 0 ? INT64_MAX : timeout_ms;
  while (true) {
    const int slice_ms = static_cast<int>(std::min<int64_t>(left_ms, kWatchMs));
    ASSIGN_OR_RETURN(Outcome outcome, reader_->Next(epoch, slice_ms, view));
    if (outcome != Outcome::kTimeout) return outcome;
    RETURN_IF_ERROR(CheckLoader());
    if (timeout_ms < 0) continue;
    if (start == 0) start = NowMs() - static_cast<uint64_t>(slice_ms);
    left_ms = timeout_ms - static_cast<int64_t>(NowMs() - start);
    if (left_ms <= 0) return Outcome::kTimeout;
  }
}

Status Connection::CheckLoader() {
  if (gone_since_ms_ == 0) {
    if (!socket_.HungUp()) return {};
    gone_since_ms_ = NowMs();
  }
  ASSIGN_OR_RETURN(auto attachment, socket_.Attach(kReplyWaitMs));
  if (attachment) {
    struct stat file {};
    const bool same = fstat(attachment->ring.get(), &file) == 0 && file.st_dev == ring_device_ &&
                      file.st_ino == ring_inode_ && attachment->reply.plan_hash == reply_.plan_hash;
    if (!same) {
      return Unavailable("replica " + std::to_string(replica_) + ": the loader of " + policy_.directory +
                         " came back with another ring (plan " + attachment->reply.plan_hash + ", was " +
                         reply_.plan_hash + "): connect again, from the start of an epoch");
    }
    if (to_.memory == MemoryKind::kDevice) RETURN_IF_ERROR(MapDeviceSlots(*attachment), "the loader that came back");
    gone_since_ms_ = 0;
    return {};
  }
  if (static_cast<int64_t>(NowMs() - gone_since_ms_) < policy_.loader_timeout_ms) return {};
  return Unavailable("replica " + std::to_string(replica_) + ": the loader of " + policy_.directory +
                     " hung up and has not come back within " + Seconds(policy_.loader_timeout_ms) +
                     " (HEADRACE_LOADER_TIMEOUT); last attempt: " + socket_.last_error().message());
}

}  // namespace headrace::client
