#include "sidecar/loader/engine.h"

#include <algorithm>

#include "common/ring/futex.h"

namespace headrace::side {

namespace {

constexpr size_t kEndsKept = 1024;  // nobody goes back further in one run
constexpr uint64_t kAdaptEveryNs = 100'000'000;
// A trainer that has waited once will again: threads are given back after this long without.
constexpr uint64_t kKeepThreadsNs = 10'000'000'000;

}  // namespace

Engine::Engine(Feed* feed, std::vector<std::unique_ptr<ring::RingWriter>>* rings,
               const device::DeviceRings* device_rings, WorkPool* pool, Signal* signal, Agreement* agreement)
    : feed_(*feed),
      rings_(*rings),
      device_rings_(*device_rings),
      pool_(*pool),
      signal_(*signal),
      counters_(rings->size()),
      agreement_(agreement),
      on_demand_(PrefetchSteps(*feed) == 0) {}

Result<std::vector<std::unique_ptr<ring::RingWriter>>> Engine::OpenRings(const std::string& run_dir, const Feed& feed) {
  const Topology& topology = feed.topology();
  ring::RingGeometry geometry;
  // Beside what is prefetched: the batch that the trainer holds, and the end of an epoch.
  geometry.slot_count = static_cast<uint64_t>(PrefetchSteps(feed)) + 2;
  geometry.slot_bytes = feed.max_bytes();
  geometry.device_slot_bytes = feed.max_device_bytes();
  geometry.component_count = static_cast<uint32_t>(feed.element_spec().size());
  geometry.plan_hash = feed.plan().hash;
  geometry.num_workers = static_cast<uint32_t>(topology.num_workers);
  geometry.worker_index = static_cast<uint32_t>(topology.worker_index);
  geometry.replicas_per_worker = static_cast<uint32_t>(topology.replicas_per_worker);
  std::vector<std::unique_ptr<ring::RingWriter>> rings;
  for (int64_t replica = 0; replica < topology.replicas_per_worker; ++replica) {
    geometry.replica = static_cast<uint32_t>(replica);
    const std::string path = run_dir + "/replica-" + std::to_string(replica) + ".ring";
    ASSIGN_OR_RETURN(auto ring, ring::RingWriter::Open(path, geometry));
    rings.push_back(std::move(ring));
  }
  return rings;
}

Status Engine::Run(const std::atomic<bool>& stop) {
  const Status status = RunEpochs(stop);
  if (status.ok() || stop.load()) return {};
  for (const auto& ring : rings_) ring->Fail(status);
  if (agreement_ != nullptr) agreement_->Fail(status);
  return status;
}

Status Engine::RunEpochs(const std::atomic<bool>& stop) {
  // After a restart: go on where the ring that is furthest behind has to.
  const auto behind = std::min_element(rings_.begin(), rings_.end(), [](const auto& a, const auto& b) {
    return std::pair(a->next_epoch(), a->next_step()) < std::pair(b->next_epoch(), b->next_step());
  });
  const uint64_t seed = (*behind)->seed();
  position_ = {(*behind)->next_epoch(), (*behind)->next_step(), seed != 0 ? seed : feed_.run_seed()};
  while (!stop.load(std::memory_order_relaxed)) {
    MoveToWanted();
    if (on_demand_ && !AwaitDemand(stop)) continue;
    epoch_.store(position_.epoch, std::memory_order_relaxed);
    RETURN_IF_ERROR(RunEpoch(stop));
  }
  return {};
}

bool Engine::MoveToWanted() {
  std::optional<ring::Position> seek;
  for (const auto& ring : rings_) {
    // Where replicas seek to different places, from the first of them all get what they want.
    const std::optional<ring::Position> other = ring->TakeSeek();
    if (other && (!seek || std::pair(other->epoch, other->step) < std::pair(seek->epoch, seek->step))) seek = other;
  }
  if (seek) {
    position_ = *seek;
    if (position_.seed == 0) position_.seed = feed_.run_seed();
    return true;
  }
  uint64_t newest = position_.epoch;
  for (const auto& ring : rings_) newest = std::max(newest, ring->TakeNewerEpoch().value_or(0));
  if (newest == position_.epoch) return false;
  position_ = {newest, 0, position_.seed};
  return true;
}

bool Engine::AwaitDemand(const std::atomic<bool>& stop) {
  while (!stop.load(std::memory_order_relaxed)) {
    if (std::any_of(rings_.begin(), rings_.end(), [](const auto& ring) { return ring->Demanded(); })) return true;
    if (MoveToWanted()) return false;
    // The other replicas' clients are noticed when this sleep is over: they wait for replica 0's as a rule.
    rings_[0]->AwaitClient();
  }
  return false;
}

Status Engine::RunEpoch(const std::atomic<bool>& stop) {
  ASSIGN_OR_RETURN(const std::unique_ptr<FeedEpoch> epoch, feed_.Start(position_));
  asked_.reset();
  asked_step_ = static_cast<int64_t>(position_.step);
  published_of_step_ = 0;
  partial_step_ = -1;
  feed_ended_ = false;
  feed_error_ = {};
  const Status status = DeliverAll(*epoch, stop);
  AbandonWorks(stop);
  return status;
}

void Engine::AbandonWorks(const std::atomic<bool>& stop) {
  pool_.Drain();
  for (const auto& device_ring : device_rings_) device_ring->Drain(stop);
  ended_works_ = 0;
  for (std::unique_ptr<Work>& work : works_) spare_works_.push_back(std::move(work));
  works_.clear();
  for (const auto& ring : rings_) ring->Unreserve();
}

Status Engine::DeliverAll(FeedEpoch& epoch, const std::atomic<bool>& stop) {
  while (!stop.load(std::memory_order_relaxed)) {
    const uint64_t seen = signal_.Now();
    RETURN_IF_ERROR(PublishDone(epoch));
    AdaptThreads();
    if (published_of_step_ == 0) {
      // A client moves all replicas, between steps.
      const ring::Position here = position_;
      const bool idle = works_.empty() && !asked_ && !feed_ended_;
      if (MoveToWanted() || (on_demand_ && idle && !AwaitDemand(stop))) {
        AbandonWorks(stop);
        return position_.epoch > here.epoch ? PublishEnd(here, stop) : Status();
      }
    }
    if (works_.empty() && feed_ended_) {
      RETURN_IF_ERROR(feed_error_);
      ASSIGN_OR_RETURN(const bool ended, EndTogether(stop));
      if (!ended) return {};
      RETURN_IF_ERROR(PublishEnd(position_, stop));
      position_ = {position_.epoch + 1, 0, position_.seed};
      return {};
    }
    ASSIGN_OR_RETURN(const bool more, AskFeed(epoch));
    if (asked_ ? Begin(epoch) : more) continue;
    if (pool_.RunOne()) continue;
    if (asked_ && AllHeld()) {
      // The ring is full and nothing is in work: sleep until its client gives a slot back, wants to be elsewhere, or
      // we are to stop; Begin finds out which.
      rings_[static_cast<size_t>(asked_->replica)]->AwaitRoom(stop, position_.epoch);
      continue;
    }
    AwaitWork(seen);
  }
  return {};
}

Result<bool> Engine::AskFeed(FeedEpoch& epoch) {
  if (asked_ || feed_ended_) return false;
  // What is computed on demand is asked for step by step.
  if (on_demand_ && !works_.empty() && works_.back()->delivery.step < asked_step_) return false;
  Delivery delivery;
  const Result<FeedEpoch::Next> next = epoch.Advance(&delivery);
  if (!next.ok()) {
    feed_ended_ = true;
    feed_error_ = next.status();
    return true;
  }
  switch (*next) {
    case FeedEpoch::Next::kNotYet: return false;
    case FeedEpoch::Next::kEnd: feed_ended_ = true; return true;
    case FeedEpoch::Next::kDelivery: break;
  }
  if (delivery.spare) partial_step_ = delivery.step;
  if (delivery.replica + 1 == static_cast<int64_t>(rings_.size())) asked_step_ = delivery.step + 1;
  asked_ = delivery;
  return true;
}

bool Engine::Begin(FeedEpoch& epoch) {
  ring::RingWriter& ring = *rings_[static_cast<size_t>(asked_->replica)];
  // Published before: by an earlier loader of this run, or before another replica's seek.
  const bool has_it =
      std::pair(position_.epoch, static_cast<uint64_t>(asked_->step)) < std::pair(ring.next_epoch(), ring.next_step());
  Result<uint8_t*> slot = static_cast<uint8_t*>(nullptr);
  if (!has_it) {
    slot = ring.TryReserve(position_.epoch);
    if (slot.ok() && *slot == nullptr) return false;
  }
  if (spare_works_.empty()) spare_works_.push_back(std::make_unique<Work>());
  Work& work = *works_.emplace_back(std::move(spare_works_.back()));
  spare_works_.pop_back();
  work.engine = this;
  work.epoch = &epoch;
  work.delivery = *asked_;
  work.error = {};
  work.wanted = !has_it && slot.ok();
  asked_.reset();
  size_t parts = 0;
  if (work.wanted) {
    work.place.slot = *slot;
    work.place.slot_bytes = ring.slot_bytes();
    const Result<size_t> begun = epoch.Begin(work.delivery, &work.place);
    if (begun.ok()) {
      parts = *begun;
    } else {
      work.error = begun.status();
    }
  } else if (!slot.ok() && slot.status().code() != Code::kCancelled) {
    work.error = slot.status();
  }
  work.parts_left.store(parts, std::memory_order_relaxed);
  for (size_t part = 0; part < parts; ++part) pool_.Add({RunPart, &work, part});
  return true;
}

void Engine::RunPart(void* context, size_t part, size_t thread) {
  Work& work = *static_cast<Work*>(context);
  const Status written = [&] {
    const StageWork decoding(&work.engine->decode_clock_);
    return work.epoch->WritePart(work.delivery, part, thread, &work.place);
  }();
  if (!written.ok()) {
    const std::lock_guard lock(work.mutex);
    if (work.error.ok()) work.error = written;
  }
  // The engine may use the work for another delivery as soon as its last part is done.
  Signal& signal = work.engine->signal_;
  if (work.parts_left.fetch_sub(1, std::memory_order_acq_rel) == 1) signal.Raise();
}

void Engine::EndSend(void* context, const Status& status) {
  Work& work = *static_cast<Work*>(context);
  Signal& signal = work.engine->signal_;
  if (!status.ok()) work.error = status;
  // The engine may use the work for another delivery from here on.
  work.parts_left.store(0, std::memory_order_release);
  signal.Raise();
}

device::DeviceRing* Engine::DeviceRingOf(const Work& work) const {
  return device_rings_.empty() ? nullptr : device_rings_[static_cast<size_t>(work.delivery.replica)].get();
}

bool Engine::Held(const Work& work) const {
  return feed_.holds_steps() && !feed_ended_ && work.delivery.step >= asked_step_;
}

bool Engine::AllHeld() const {
  return std::all_of(works_.begin(), works_.end(), [this](const auto& work) {
    return work->parts_left.load(std::memory_order_acquire) == 0 && Held(*work);
  });
}

Status Engine::PublishDone(FeedEpoch& epoch) {
  const auto is_over = [](const Work& work) { return work.parts_left.load(std::memory_order_acquire) == 0; };
  for (; ended_works_ < works_.size() && is_over(*works_[ended_works_]) && !Held(*works_[ended_works_]);
       ++ended_works_) {
    Work& work = *works_[ended_works_];
    if (work.error.ok()) work.error = epoch.End(&work.delivery, &work.place);
    if (!work.error.ok()) break;  // told once what comes before it is published
    device::DeviceRing* const device_ring = DeviceRingOf(work);
    if (!work.wanted || device_ring == nullptr) continue;
    work.parts_left.store(1, std::memory_order_relaxed);
    device_ring->Send(work.place.slot, work.place.extents, EndSend, &work);
  }
  while (!works_.empty() && is_over(*works_.front())) {
    Work& work = *works_.front();
    if (ended_works_ == 0) return Held(work) ? Status() : work.error;
    RETURN_IF_ERROR(work.error);
    --ended_works_;
    if (work.wanted) Publish(work);
    const int64_t step = work.delivery.step;
    spare_works_.push_back(std::move(works_.front()));
    works_.pop_front();
    if (++published_of_step_ < rings_.size()) continue;
    published_of_step_ = 0;
    position_.step = static_cast<uint64_t>(step) + 1;
    if (agreement_ != nullptr) {
      agreement_->Announce(position_.epoch, step + 1, false);
      RETURN_IF_ERROR(agreement_->failure());
    }
  }
  return {};
}

void Engine::Publish(const Work& work) {
  const auto replica = static_cast<size_t>(work.delivery.replica);
  ring::SlotDescriptor descriptor{};
  descriptor.epoch = position_.epoch;
  descriptor.step = static_cast<uint64_t>(work.delivery.step);
  descriptor.rows = static_cast<uint64_t>(work.delivery.rows);
  descriptor.flags = feed_.holds_steps() && work.delivery.step == partial_step_ ? uint32_t{ring::kPartialStep} : 0;
  descriptor.seed = position_.seed;
  Publish(replica, descriptor, work.place.slot, work.place.extents);
  uint64_t bytes = 0;
  for (const ring::ComponentExtent& extent : work.place.extents) bytes += extent.bytes;
  ReplicaCounters& counters = counters_[replica];
  counters.batches.fetch_add(1, std::memory_order_relaxed);
  counters.records.fetch_add(static_cast<uint64_t>(work.delivery.records), std::memory_order_relaxed);
  counters.bytes.fetch_add(bytes, std::memory_order_relaxed);
}

void Engine::Publish(size_t replica, ring::SlotDescriptor descriptor, const uint8_t* slot,
                     std::span<const ring::ComponentExtent> extents) {
  if (!device_rings_.empty()) {
    descriptor.device_ring = device_rings_[replica]->generation();
    device_rings_[replica]->MarkFilled(slot);
  }
  rings_[replica]->Publish(descriptor, extents);
}

Status Engine::SendNow(size_t replica, const uint8_t* slot, std::span<ring::ComponentExtent> extents,
                       const std::atomic<bool>& stop) {
  if (device_rings_.empty()) return {};
  Status sent;
  const auto done = [](void* context, const Status& status) { *static_cast<Status*>(context) = status; };
  device_rings_[replica]->Send(slot, extents, done, &sent);
  device_rings_[replica]->Drain(stop);
  if (stop.load(std::memory_order_relaxed)) return Cancelled("asked to stop");
  return sent;
}

Result<bool> Engine::EndTogether(const std::atomic<bool>& stop) {
  if (agreement_ == nullptr) return true;
  const uint64_t epoch = position_.epoch;
  agreement_->Announce(epoch, static_cast<int64_t>(position_.step), true);
  const auto known_end = ends_.find(epoch);
  while (true) {
    const ring::Position here = position_;
    bool moved = false;
    const auto give_up = [&] { return stop.load(std::memory_order_relaxed) || (moved = MoveToWanted()); };
    Result<bool> more = known_end != ends_.end()
                            ? Result<bool>(here.step < known_end->second)
                            : agreement_->AnyHasStep(epoch, static_cast<int64_t>(here.step), give_up);
    if (!more.ok() && more.status().code() != Code::kCancelled) {
      // A worker has left, as all do when training is over: an error only for a trainer that wants this epoch.
      if (agreement_->failure().ok() && !AwaitDemand(stop)) return false;
      return more;
    }
    if (!more.ok() || give_up()) {
      if (moved && position_.epoch > epoch) RETURN_IF_ERROR(PublishEnd(here, stop));
      return false;
    }
    if (!*more) break;
    RETURN_IF_ERROR(PublishEmptyStep(stop));
    ++position_.step;
  }
  ends_[epoch] = position_.step;
  if (ends_.size() > kEndsKept) ends_.erase(ends_.begin());
  return true;
}

Status Engine::PublishEmptyStep(const std::atomic<bool>& stop) {
  Work work;
  work.delivery.step = static_cast<int64_t>(position_.step);
  for (const auto& ring : rings_) {
    work.delivery.replica = &ring - rings_.data();
    if (std::pair(position_.epoch, position_.step) < std::pair(ring->next_epoch(), ring->next_step())) continue;
    const Result<uint8_t*> slot = ring->Reserve(stop, position_.epoch);
    if (!slot.ok()) {
      if (slot.status().code() == Code::kCancelled) continue;
      return slot.status();
    }
    work.place.slot = *slot;
    WriteEmpty(feed_.element_spec(), *slot, &work.place.extents);
    RETURN_IF_ERROR(SendNow(static_cast<size_t>(work.delivery.replica), *slot, work.place.extents, stop));
    Publish(work);
  }
  return {};
}

Status Engine::PublishEnd(const ring::Position& end, const std::atomic<bool>& stop) {
  for (const auto& ring : rings_) {
    if (end.epoch < ring->next_epoch()) continue;
    const Result<uint8_t*> slot = ring->Reserve(stop, end.epoch);
    if (!slot.ok()) {
      if (slot.status().code() == Code::kCancelled) continue;
      return slot.status();
    }
    ring::SlotDescriptor descriptor{};
    descriptor.epoch = end.epoch;
    descriptor.step = end.step;
    descriptor.flags = ring::kEndOfEpoch;
    descriptor.seed = end.seed;
    const auto replica = static_cast<size_t>(&ring - rings_.data());
    RETURN_IF_ERROR(SendNow(replica, *slot, {}, stop));
    Publish(replica, descriptor, *slot, {});
  }
  return {};
}

void Engine::AwaitWork(uint64_t seen) {
  // Not while other threads decode, or a ring has no room.
  const bool starved = !asked_ && !feed_ended_ && AllHeld();
  const uint64_t start = ring::MonotonicNs();
  signal_.AwaitAfter(seen);
  if (starved) decode_clock_.AddBlockedOnInput(ring::MonotonicNs() - start);
}

StageTimes Engine::decode_times() const {
  StageTimes times = decode_clock_.times();
  for (const auto& ring : rings_) {
    times.blocked_on_output_ns += ring->header().loader_wait_ns.load(std::memory_order_relaxed);
  }
  return times;
}

void Engine::AdaptThreads() {
  const uint64_t now = ring::MonotonicNs();
  if (now - adapted_ns_ < kAdaptEveryNs) return;
  const uint64_t elapsed = now - adapted_ns_;
  adapted_ns_ = now;
  uint64_t waited = 0;
  for (const auto& ring : rings_) waited += ring->header().trainer_wait_ns.load(std::memory_order_relaxed);
  const bool waiting = (waited - trainers_waited_ns_) * 100 > elapsed;
  trainers_waited_ns_ = waited;
  if (waiting) {
    keep_threads_until_ns_ = now + kKeepThreadsNs;
    if (pool_.active() < pool_.threads()) pool_.SetActive(pool_.threads());
  } else if (now > keep_threads_until_ns_ && pool_.active() > 1) {
    pool_.SetActive(pool_.active() - 1);
  }
}

}  // namespace headrace::side
