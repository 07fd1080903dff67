#include "sidecar/collective/ledger.h"

#include <algorithm>

namespace headrace::side {

Ledger::Ledger(int64_t num_workers) : of_worker_(static_cast<size_t>(num_workers)) {
  positions_.insert(of_worker_.begin(), of_worker_.end());
}

void Ledger::AddFinal(uint64_t epoch, int64_t steps) {
  if (epoch < floor()) return;
  int64_t& most = steps_[epoch];
  most = std::max(most, steps);
}

void Ledger::Report(int64_t worker, uint64_t epoch, int64_t steps, bool ended) {
  AddFinal(epoch, steps);
  Position& position = of_worker_[static_cast<size_t>(worker)];
  if (const Position now{epoch, ended}; now > position) {
    positions_.erase(positions_.find(position));
    positions_.insert(now);
    position = now;
    steps_.erase(steps_.begin(), steps_.lower_bound(floor()));
  }
}

EpochKnowledge Ledger::Of(uint64_t epoch) const {
  const auto found = steps_.find(epoch);
  return {found == steps_.end() ? 0 : found->second, *positions_.begin() >= Position{epoch, true}};
}

uint64_t Ledger::FirstOpenOf(int64_t worker) const {
  const Position& position = of_worker_[static_cast<size_t>(worker)];
  return position.second ? position.first + 1 : position.first;
}

std::vector<uint64_t> Ledger::Epochs() const {
  std::vector<uint64_t> epochs;
  for (const auto& [epoch, steps] : steps_) epochs.push_back(epoch);
  return epochs;
}

}  // namespace headrace::side
