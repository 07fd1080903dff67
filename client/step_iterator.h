// An epoch's steps over one replica or several: where next() and get_next_as_optional() differ.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "client/batch.h"
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
  // The next step: a batch of each connection, which the caller must free, into `batches`. What a time-out or an error
  // finds of a step is kept for the next call, but for a step that is Corrupt: its slots go back at once.
  [[gnu::hot]] Result<Outcome> Next(PartialStep partial, int64_t timeout_ms, headrace_batch** batches);

  // Where the next step is.
  const ring::Position& position() const { return position_; }
  // Its connections.
  size_t width() const { return parts_.size(); }

 private:
  // The batches of the next step that have not arrived. kStep: now they have. Apart from Next, which then is short
  // where all are prepared.
  [[gnu::noinline]] Result<Outcome> Await(int64_t timeout_ms);
  // Of all that has arrived. Errors: Corrupt, and all has been given back.
  [[gnu::noinline]] Status Measure();
  Outcome End();
  // Gives back what has arrived of the next step.
  void LetGo();

  struct Part {
    std::shared_ptr<Connection> connection;
    uint64_t iterator = 0;            // ours, of the connection's
    headrace_batch* batch = nullptr;  // of the next step, if it has arrived
  };
  std::vector<Part> parts_;
  size_t arrived_ = 0;       // parts whose batch of the next step is there
  ring::Position position_;  // of the next step
  bool ended_ = false;
};

}  // namespace headrace::client
