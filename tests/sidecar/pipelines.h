// Runs a spec through the loader's pipeline, as its engine does, and keeps what every replica of one worker gets.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/ring/geometry.h"
#include "sidecar/loader/pipeline.h"

namespace headrace::side {

struct Delivered {
  int64_t step = 0;
  int64_t replica = 0;
  int64_t rows = 0;
  std::vector<std::vector<int64_t>> dims;  // by component
  std::vector<std::vector<uint8_t>> bytes;
  std::vector<std::vector<int64_t>> splits;  // of components of variable length; else empty

  template <typename T>
  std::vector<T> Values(size_t component = 0) const {
    std::vector<T> values(bytes[component].size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), bytes[component].data(), values.size() * sizeof(T));
    return values;
  }
};

// The next delivery, waited for. false: the epoch is over.
inline Result<bool> AwaitNext(FeedEpoch& epoch, Signal& signal, FeedEpoch::Delivery* delivery) {
  while (true) {
    const uint64_t seen = signal.Now();
    ASSIGN_OR_RETURN(const FeedEpoch::Next next, epoch.Advance(delivery));
    if (next != FeedEpoch::Next::kNotYet) return next == FeedEpoch::Next::kDelivery;
    signal.AwaitAfter(seen);
  }
}

// Writes all of a delivery.
inline Status WriteWhole(FeedEpoch& epoch, FeedEpoch::Delivery* delivery, FeedEpoch::Place* place) {
  ASSIGN_OR_RETURN(const size_t parts, epoch.Begin(*delivery, place));
  for (size_t part = 0; part < parts; ++part) RETURN_IF_ERROR(epoch.WritePart(*delivery, part, 0, place));
  return epoch.End(delivery, place);
}

class PipelineRun {
 public:
  explicit PipelineRun(const std::string& spec, Topology topology = {}, const std::string& data_dir = "") {
    auto parsed = ParseInputSpec(nlohmann::json::parse(spec));
    if (!parsed.ok()) {
      status_ = parsed.status();
      return;
    }
    auto created =
        Pipeline::Create(CompilePlan(std::move(*parsed), "test"), topology, data_dir, "run", "", 1, &signal_);
    status_ = created.status();
    if (created.ok()) pipeline_ = std::move(*created);
  }

  // Called after each delivery with how many there were.
  std::function<void(size_t)> on_delivery = [](size_t) {};

  const Status& status() const { return status_; }
  Pipeline& pipeline() { return *pipeline_; }

  // All deliveries of an epoch, up to `most`; what there was before an error, which status() then holds.
  std::vector<Delivered> Epoch(uint64_t epoch = 0, size_t most = 10000) {
    std::vector<Delivered> all;
    if (pipeline_ == nullptr) return all;
    auto feed = pipeline_->Start({epoch, 0, pipeline_->run_seed()});
    status_ = feed.status();
    FeedEpoch::Delivery delivery;
    std::vector<uint8_t> slot(pipeline_->max_bytes());
    FeedEpoch::Place place{slot.data(), slot.size(), {}};
    while (status_.ok() && all.size() < most) {
      const auto more = AwaitNext(**feed, signal_, &delivery);
      status_ = more.status();
      if (!more.ok() || !*more) break;
      std::fill(slot.begin(), slot.end(), uint8_t{0xee});
      status_ = WriteWhole(**feed, &delivery, &place);
      if (!status_.ok()) break;
      Delivered& delivered = all.emplace_back(Delivered{delivery.step, delivery.replica, delivery.rows, {}, {}, {}});
      for (const ring::ComponentExtent& extent : place.extents) {
        delivered.dims.emplace_back(extent.dims, extent.dims + extent.ndim);
        const auto* const splits = reinterpret_cast<const int64_t*>(&slot[0] + extent.splits_offset);
        const uint64_t num_splits = extent.splits_offset == 0 ? 0 : ring::NumSplits(extent).value_or(0);
        delivered.splits.emplace_back(splits, splits + num_splits);
        delivered.bytes.emplace_back(&slot[0] + extent.offset, &slot[0] + extent.offset + extent.bytes);
      }
      on_delivery(all.size());
    }
    return all;
  }

  // The values of one component over all deliveries of an epoch.
  template <typename T>
  std::vector<T> Values(size_t component = 0, uint64_t epoch = 0) {
    std::vector<T> values;
    for (const Delivered& delivered : Epoch(epoch)) {
      for (const T value : delivered.Values<T>(component)) values.push_back(value);
    }
    return values;
  }

 private:
  Status status_;
  Signal signal_;
  std::unique_ptr<Pipeline> pipeline_;
};

inline std::string RangeSpec(int64_t stop, const std::string& pipeline, const std::string& rest = "") {
  return R"({"source": {"range": {"stop": )" + std::to_string(stop) + R"(}}, "pipeline": )" + pipeline + rest + "}";
}

}  // namespace headrace::side
