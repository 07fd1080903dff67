// An epoch's steps over one replica or several: where next() and get_next_as_optional() differ.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "client/connection.h"

namespace headrace::client {

// Used by one thread at a time.
class StepIterator {
 public:
  // Starts the next epoch, or at `start` (may be null), on all of `connections`. REQUIRES: at least one.
  StepIterator(std::vector<std::shared_ptr<Connection>> connections, const ring::Position* start);
  ~StepIterator();
  StepIterator(const StepIterator&) = delete;
  StepIterator& operator=(const StepIterator&) = delete;

  enum class PartialStep { kEnd, kDeliver };
  enum class Outcome { kStep, kEnd, kTimeout };
  // The next step, one batch for each connection, which the caller must release. What a time-out or an error finds of a
  // step is kept for the next call.
  Result<Outcome> Next(PartialStep partial, int64_t timeout_ms, std::vector<Arrival>* arrivals);

  // Where the next step is.
  const ring::Position& position() const { return position_; }
  const std::vector<std::shared_ptr<Connection>>& connections() const { return connections_; }

 private:
  void End();

  std::vector<std::shared_ptr<Connection>> connections_;
  std::vector<uint64_t> numbers_;  // ours, of each connection's iterators
  ring::Position position_;        // of the next step
  std::vector<Arrival> arrived_;   // of the next step, of the first connections
  bool ended_ = false;
};

}  // namespace headrace::client
