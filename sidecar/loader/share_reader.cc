#include "sidecar/loader/share_reader.h"

#include <algorithm>
#include <cstring>

#include "common/ring/geometry.h"

namespace headrace::side {
namespace {

// Where the last of the slot's bytes lies that a component uses.
uint64_t UsedBytes(const std::vector<ring::ComponentExtent>& extents) {
  uint64_t used = 0;
  for (const ring::ComponentExtent& extent : extents) {
    used = std::max(used, extent.offset + extent.bytes);
    if (extent.splits_offset == 0) continue;
    used = std::max(used, extent.splits_offset + ring::NumSplits(extent).value_or(0) * sizeof(int64_t));
  }
  return used;
}

}  // namespace

size_t PackedDelivery::HeadBytes(size_t components) {
  return AlignTensor(sizeof(PackedDelivery) + components * sizeof(ring::ComponentExtent));
}

ShareReader::ShareReader(std::unique_ptr<Feed> feed, std::unique_ptr<Signal> signal, size_t threads, int64_t workers,
                         int64_t replicas)
    : signal_(std::move(signal)),
      feed_(std::move(feed)),
      workers_(static_cast<uint64_t>(workers)),
      replicas_(static_cast<uint64_t>(replicas)),
      pool_(threads) {}

ShareReader::~ShareReader() { pool_.Drain(); }

void ShareReader::Stop() {
  stop_ = true;
  feed_->Stop();
  signal_->Raise();
}

Result<bool> ShareReader::Read(const SharePlace& at, std::span<Exchange::Part> parts) {
  FeedEpoch::Delivery delivery;
  if (epoch_ == nullptr || at != next_) {
    epoch_.reset();
    ASSIGN_OR_RETURN(epoch_, feed_->Start({at.epoch, at.delivery / replicas_, at.seed}));
    next_ = at;
    // An epoch starts with a step.
    for (uint64_t passed = 0; passed < at.delivery % replicas_ * workers_; ++passed) {
      ASSIGN_OR_RETURN(const bool more, Next(&delivery));
      if (!more) return false;
    }
  }
  for (Exchange::Part& part : parts) {
    ASSIGN_OR_RETURN(const bool more, Next(&delivery));
    if (!more) return false;  // before the first of them: steps are whole
    RETURN_IF_ERROR(Pack(delivery, &part));
  }
  ++next_.delivery;
  return true;
}

Result<bool> ShareReader::Next(FeedEpoch::Delivery* delivery) {
  while (!stop_) {
    const uint64_t seen = signal_->Now();
    ASSIGN_OR_RETURN(const FeedEpoch::Next next, epoch_->Advance(delivery));
    if (next != FeedEpoch::Next::kNotYet) return next == FeedEpoch::Next::kDelivery;
    signal_->AwaitAfter(seen);
  }
  return Cancelled("asked to stop");
}

Status ShareReader::Pack(FeedEpoch::Delivery delivery, Exchange::Part* part) {
  const size_t head_bytes = PackedDelivery::HeadBytes(feed_->element_spec().size());
  packing_ = &delivery;
  place_.slot = part->data + head_bytes;
  place_.slot_bytes = feed_->max_bytes();
  ASSIGN_OR_RETURN(const size_t parts, epoch_->Begin(delivery, &place_));
  written_.assign(parts, Status());
  parts_left_ = parts;
  for (size_t i = 0; i < parts; ++i) pool_.Add({RunPart, this, i});
  while (true) {
    const uint64_t seen = signal_->Now();
    if (parts_left_ == 0) break;
    if (!pool_.RunOne()) signal_->AwaitAfter(seen);
  }
  for (const Status& status : written_) RETURN_IF_ERROR(status);
  RETURN_IF_ERROR(epoch_->End(&delivery, &place_));
  const PackedDelivery head{delivery.rows, delivery.records, UsedBytes(place_.extents), feed_->gpu_images().size()};
  std::memcpy(part->data, &head, sizeof head);
  std::memcpy(part->data + sizeof head, place_.extents.data(), place_.extents.size() * sizeof(ring::ComponentExtent));
  part->bytes = head_bytes + head.slot_bytes;
  return {};
}

void ShareReader::RunPart(void* context, size_t part, size_t thread) {
  auto& reader = *static_cast<ShareReader*>(context);
  reader.written_[part] = reader.epoch_->WritePart(*reader.packing_, part, thread, &reader.place_);
  if (reader.parts_left_.fetch_sub(1) == 1) reader.signal_->Raise();
}

}  // namespace headrace::side
