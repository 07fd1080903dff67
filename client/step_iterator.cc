#include "client/step_iterator.h"

#include <algorithm>
#include <chrono>

namespace headrace::client {

StepIterator::StepIterator(std::vector<std::shared_ptr<Connection>> connections, const ring::Position* start)
    : connections_(std::move(connections)) {
  if (start != nullptr) {
    position_ = *start;
    for (const auto& connection : connections_) numbers_.push_back(connection->StartIterationAt(*start));
  } else {
    // The same epoch for all, also where a trainer before us had started it for some of them only.
    for (const auto& connection : connections_) position_.epoch = std::max(position_.epoch, connection->NextEpoch());
    for (const auto& connection : connections_) numbers_.push_back(connection->StartIteration(position_.epoch));
  }
  position_.seed = connections_[0]->seed();
  arrived_.reserve(connections_.size());
}

StepIterator::~StepIterator() { End(); }

void StepIterator::End() {
  for (size_t i = 0; i < arrived_.size(); ++i) connections_[i]->Release(arrived_[i]);
  arrived_.clear();
  ended_ = true;
}

Result<StepIterator::Outcome> StepIterator::Next(PartialStep partial, int64_t timeout_ms,
                                                 std::vector<Arrival>* arrivals) {
  using Clock = std::chrono::steady_clock;
  if (ended_) return Outcome::kEnd;
  // The clock is read only where more than one ring shares the time.
  const bool timed = timeout_ms > 0 && connections_.size() > 1;
  const Clock::time_point start = timed ? Clock::now() : Clock::time_point();
  while (arrived_.size() < connections_.size()) {
    const size_t i = arrived_.size();
    int64_t left_ms = timeout_ms;
    if (timed) {
      left_ms -= std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start).count();
      left_ms = std::max<int64_t>(left_ms, 0);
    }
    Arrival arrival;
    ASSIGN_OR_RETURN(auto outcome, connections_[i]->Next(numbers_[i], left_ms, &arrival));
    if (outcome == ring::RingReader::Outcome::kTimeout) return Outcome::kTimeout;
    if (outcome == ring::RingReader::Outcome::kEndOfEpoch) {
      End();
      return Outcome::kEnd;
    }
    arrived_.push_back(std::move(arrival));
  }
  const uint64_t step = arrived_[0].view.step;
  for (const Arrival& arrival : arrived_) {
    if (arrival.view.step != step) {
      return Internal("replica " + std::to_string(connections_[0]->replica()) + " is at step " + std::to_string(step) +
                      " and replica " + std::to_string(connections_[&arrival - arrived_.data()]->replica()) +
                      " at step " + std::to_string(arrival.view.step) +
                      ": a worker's replicas must be read either together or each by its own iterator");
    }
  }
  const bool is_partial = std::any_of(arrived_.begin(), arrived_.end(), [](const Arrival& arrival) {
    return (arrival.view.flags & ring::kPartialStep) != 0;
  });
  if (is_partial && partial == PartialStep::kEnd) {
    End();
    return Outcome::kEnd;
  }
  position_.step = step + 1;
  arrivals->clear();
  arrivals->swap(arrived_);
  return Outcome::kStep;
}

}  // namespace headrace::client
