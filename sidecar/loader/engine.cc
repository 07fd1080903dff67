#include "sidecar/loader/engine.h"

#include <algorithm>

namespace headrace::side {

Engine::Engine(Pipeline* pipeline, std::vector<std::unique_ptr<ring::RingWriter>>* rings)
    : pipeline_(*pipeline), rings_(*rings), counters_(rings->size()) {}

Result<std::vector<std::unique_ptr<ring::RingWriter>>> Engine::OpenRings(const std::string& run_dir,
                                                                         const Pipeline& pipeline) {
  const Topology& topology = pipeline.topology();
  const int64_t prefetch = pipeline.plan().spec.delivery.prefetch_steps.value_or(topology.replicas_in_sync());
  ring::RingGeometry geometry;
  // Beside what is prefetched: the batch that the trainer holds, and the end of an epoch.
  geometry.slot_count = static_cast<uint64_t>(prefetch) + 2;
  geometry.slot_bytes = pipeline.layout().max_bytes();
  geometry.component_count = static_cast<uint32_t>(pipeline.layout().components());
  geometry.plan_hash = pipeline.plan().hash;
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
  return status;
}

Status Engine::RunEpochs(const std::atomic<bool>& stop) {
  // After a restart: go on where the ring that is furthest behind has to.
  uint64_t epoch = rings_[0]->next_epoch();
  for (const auto& ring : rings_) epoch = std::min(epoch, ring->next_epoch());
  while (!stop.load(std::memory_order_relaxed)) {
    epoch = std::max(epoch, NewestWantedEpoch());
    epoch_.store(epoch, std::memory_order_relaxed);
    RETURN_IF_ERROR(RunEpoch(epoch, stop));
    ++epoch;
  }
  return {};
}

Status Engine::RunEpoch(uint64_t epoch, const std::atomic<bool>& stop) {
  Deal deal(pipeline_.plan(), pipeline_.topology(), pipeline_.Iterate(epoch));
  Delivery delivery;
  int64_t steps = 0;
  while (!stop.load(std::memory_order_relaxed)) {
    ASSIGN_OR_RETURN(const bool more, deal.Next(&delivery));
    if (!more) break;
    // A client that started a newer iterator ends this epoch for all replicas, between steps.
    if (delivery.replica == 0 && NewestWantedEpoch() > epoch) break;
    RETURN_IF_ERROR(Deliver(epoch, delivery, stop));
    steps = delivery.step + 1;
  }
  for (const auto& ring : rings_) {
    if (epoch < ring->next_epoch()) continue;
    const Result<uint8_t*> slot = ring->Reserve(stop, epoch);
    if (!slot.ok()) {
      if (slot.status().code() == Code::kCancelled) continue;
      return slot.status();
    }
    ring::SlotDescriptor end{};
    end.epoch = epoch;
    end.step = static_cast<uint64_t>(steps);
    end.flags = ring::kEndOfEpoch;
    ring->Publish(end, {});
  }
  return {};
}

Status Engine::Deliver(uint64_t epoch, const Delivery& delivery, const std::atomic<bool>& stop) {
  ring::RingWriter& ring = *rings_[static_cast<size_t>(delivery.replica)];
  const auto step = static_cast<uint64_t>(delivery.step);
  // Published by an earlier loader of this run.
  if (epoch < ring.next_epoch() || (epoch == ring.next_epoch() && step < ring.next_step())) return {};
  const Result<uint8_t*> slot = ring.Reserve(stop, epoch);
  if (!slot.ok()) {
    // Stopping, or this replica's client has moved on: it does not want the batch.
    if (slot.status().code() == Code::kCancelled) return {};
    return slot.status();
  }
  const Piece& piece = delivery.piece;
  const uint64_t bytes = pipeline_.layout().Extents(piece.rows, piece.row_records, &extents_);
  if (bytes > ring.slot_bytes()) return Internal("a batch of " + std::to_string(bytes) + " bytes outgrew its slot");
  columns_.clear();
  for (const ring::ComponentExtent& extent : extents_) columns_.push_back(*slot + extent.offset);
  RETURN_IF_ERROR(pipeline_.decoder().Decode(piece.records, columns_));
  ring::SlotDescriptor descriptor{};
  descriptor.epoch = epoch;
  descriptor.step = step;
  descriptor.rows = static_cast<uint64_t>(piece.rows);
  descriptor.flags = delivery.partial ? uint32_t{ring::kPartialStep} : 0;
  if (pipeline_.layout().batch_dims() > 1) {
    descriptor.inner_dims_count = 1;
    descriptor.inner_dims[0] = static_cast<uint64_t>(piece.row_records);
  }
  ring.Publish(descriptor, extents_);
  ReplicaCounters& counters = counters_[static_cast<size_t>(delivery.replica)];
  counters.batches.fetch_add(1, std::memory_order_relaxed);
  counters.records.fetch_add(piece.records.size(), std::memory_order_relaxed);
  counters.bytes.fetch_add(bytes, std::memory_order_relaxed);
  return {};
}

uint64_t Engine::NewestWantedEpoch() const {
  uint64_t newest = 0;
  for (const auto& ring : rings_) newest = std::max(newest, ring->wanted_epoch());
  return newest;
}

}  // namespace headrace::side
