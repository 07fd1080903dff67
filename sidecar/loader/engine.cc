#include "sidecar/loader/engine.h"

#include <algorithm>

namespace headrace::side {

namespace {

constexpr size_t kEndsKept = 1024;  // nobody goes back further in one run

int64_t PrefetchSteps(const Feed& feed) {
  return feed.plan().spec.delivery.prefetch_steps.value_or(feed.default_prefetch_steps());
}

// Deliveries to replicas for which there is no data.
class EmptyEpoch : public FeedEpoch {
 public:
  explicit EmptyEpoch(const std::vector<TensorSpec>& element_spec) : element_spec_(element_spec) {}
  Result<bool> Next(Delivery*) override { return false; }
  Status Write(uint8_t* slot, uint64_t, std::vector<ring::ComponentExtent>* extents) override {
    WriteEmpty(element_spec_, slot, extents);
    return {};
  }

 private:
  const std::vector<TensorSpec>& element_spec_;
};

}  // namespace

Engine::Engine(Feed* feed, std::vector<std::unique_ptr<ring::RingWriter>>* rings, Agreement* agreement)
    : feed_(*feed),
      rings_(*rings),
      counters_(rings->size()),
      agreement_(agreement),
      on_demand_(PrefetchSteps(*feed) == 0),
      written_(rings->size()) {}

Result<std::vector<std::unique_ptr<ring::RingWriter>>> Engine::OpenRings(const std::string& run_dir, const Feed& feed) {
  const Topology& topology = feed.topology();
  ring::RingGeometry geometry;
  // Beside what is prefetched: the batch that the trainer holds, and the end of an epoch.
  geometry.slot_count = static_cast<uint64_t>(PrefetchSteps(feed)) + 2;
  geometry.slot_bytes = feed.max_bytes();
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
  for (Written& written : written_) written.waits = false;
  bool partial = false;
  Delivery delivery;
  while (!stop.load(std::memory_order_relaxed)) {
    ASSIGN_OR_RETURN(const bool more, epoch->Next(&delivery));
    if (!more) {
      ASSIGN_OR_RETURN(const bool ended, EndTogether(stop));
      if (!ended) return {};
      RETURN_IF_ERROR(PublishEnd(position_, stop));
      position_ = {position_.epoch + 1, 0, position_.seed};
      return {};
    }
    partial = partial || delivery.spare;
    RETURN_IF_ERROR(Deliver(*epoch, delivery, stop));
    if (delivery.replica + 1 < static_cast<int64_t>(rings_.size())) continue;
    PublishWritten(partial && feed_.holds_steps() ? uint32_t{ring::kPartialStep} : 0);
    position_.step = static_cast<uint64_t>(delivery.step) + 1;
    if (agreement_ != nullptr) {
      agreement_->Announce(position_.epoch, delivery.step + 1, false);
      RETURN_IF_ERROR(agreement_->failure());
    }
    // A client moves all replicas, between steps.
    const ring::Position here = position_;
    if (MoveToWanted() || (on_demand_ && !AwaitDemand(stop)))
      return position_.epoch > here.epoch ? PublishEnd(here, stop) : Status();
  }
  return {};
}

Result<bool> Engine::EndTogether(const std::atomic<bool>& stop) {
  if (agreement_ == nullptr) return true;
  const uint64_t epoch = position_.epoch;
  agreement_->Announce(epoch, static_cast<int64_t>(position_.step), true);
  const auto known_end = ends_.find(epoch);
  EmptyEpoch empty(feed_.element_spec());
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
    for (size_t replica = 0; replica < rings_.size(); ++replica) {
      const Delivery delivery{static_cast<int64_t>(here.step), static_cast<int64_t>(replica), 0, 0, true};
      RETURN_IF_ERROR(Deliver(empty, delivery, stop));
    }
    PublishWritten(0);
    ++position_.step;
  }
  ends_[epoch] = position_.step;
  if (ends_.size() > kEndsKept) ends_.erase(ends_.begin());
  return true;
}

Status Engine::Deliver(FeedEpoch& epoch, const Delivery& delivery, const std::atomic<bool>& stop) {
  const auto replica = static_cast<size_t>(delivery.replica);
  ring::RingWriter& ring = *rings_[replica];
  // Published before: by an earlier loader of this run, or before another replica's seek.
  if (std::pair(position_.epoch, static_cast<uint64_t>(delivery.step)) <
      std::pair(ring.next_epoch(), ring.next_step())) {
    return {};
  }
  const Result<uint8_t*> slot = ring.Reserve(stop, position_.epoch);
  if (!slot.ok()) {
    // Stopping, or this replica's client has moved on: it does not want the batch.
    return slot.status().code() == Code::kCancelled ? Status() : slot.status();
  }
  Written& written = written_[replica];
  RETURN_IF_ERROR(epoch.Write(*slot, ring.slot_bytes(), &written.extents));
  written.delivery = delivery;
  written.waits = true;
  // The others wait for nothing; a step that may turn out not to be whole is published once that is known.
  if (!feed_.holds_steps()) PublishWritten(0);
  return {};
}

void Engine::PublishWritten(uint32_t flags) {
  for (size_t replica = 0; replica < rings_.size(); ++replica) {
    Written& written = written_[replica];
    if (!written.waits) continue;
    written.waits = false;
    ring::SlotDescriptor descriptor{};
    descriptor.epoch = position_.epoch;
    descriptor.step = static_cast<uint64_t>(written.delivery.step);
    descriptor.rows = static_cast<uint64_t>(written.delivery.rows);
    descriptor.flags = flags;
    descriptor.seed = position_.seed;
    rings_[replica]->Publish(descriptor, written.extents);
    uint64_t bytes = 0;
    for (const ring::ComponentExtent& extent : written.extents) bytes += extent.bytes;
    ReplicaCounters& counters = counters_[replica];
    counters.batches.fetch_add(1, std::memory_order_relaxed);
    counters.records.fetch_add(static_cast<uint64_t>(written.delivery.records), std::memory_order_relaxed);
    counters.bytes.fetch_add(bytes, std::memory_order_relaxed);
  }
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
    ring->Publish(descriptor, {});
  }
  return {};
}

}  // namespace headrace::side
