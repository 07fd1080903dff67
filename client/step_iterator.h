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
  // Starts the epoch on all of `connections`. REQUIRES: at least one.
  explicit StepIterator(std::vector<std::shared_ptr<Connection>> connections);
  ~StepIterator();
  StepIterator(const StepIterator&) = delete;
  StepIterator& operator=(const StepIterator&) = delete;

  enum class PartialStep { kEnd, kDeliver };
  enum class Outcome { kStep, kEnd, kTimeout };
  // The next step, one view for each connection, which the caller must release. What a time-out or an error finds of a
  // step is kept for the next call.
  Result<Outcome> Next(PartialStep partial, int64_t timeout_ms, std::vector<ring::SlotView>* views);

  const std::vector<std::shared_ptr<Connection>>& connections() const { return connections_; }

 private:
  void End();

  std::vector<std::shared_ptr<Connection>> connections_;
  uint64_t epoch_ = 0;
  std::vector<ring::SlotView> arrived_;  // of the next step, of the first connections
  bool ended_ = false;
};

}  // namespace headrace::client
