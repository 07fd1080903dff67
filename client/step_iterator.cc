#include "client/step_iterator.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace headrace::client {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

int64_t LeftMs(Clock::time_point deadline) {
  return std::max<int64_t>(std::chrono::duration_cast<Milliseconds>(deadline - Clock::now()).count(), 0);
}

[[gnu::cold, gnu::noinline]] Status NotTogether(const headrace_batch& first, const headrace_batch& other) {
  return Internal("replica " + std::to_string(first.connection->replica()) + " is at step " +
                  std::to_string(first.view().step) + " and replica " + std::to_string(other.connection->replica()) +
                  " at step " + std::to_string(other.view().step) +
                  ": a worker's replicas must be read either together or each by its own iterator");
}

}  // namespace

StepIterator::StepIterator(std::vector<std::shared_ptr<Connection>> connections, const ring::Position* start) {
  for (auto& connection : connections) parts_.push_back({std::move(connection)});
  if (start != nullptr) {
    position_ = *start;
    for (Part& part : parts_) part.iterator = part.connection->StartIterationAt(*start);
  } else {
    // The same epoch for all, also where a trainer before us had started it for some of them only.
    for (const Part& part : parts_) position_.epoch = std::max(position_.epoch, part.connection->NextEpoch());
    for (Part& part : parts_) part.iterator = part.connection->StartIteration(position_.epoch);
  }
  position_.seed = parts_[0].connection->seed();
}

StepIterator::~StepIterator() {
  for (const Part& part : parts_) part.connection->EndIteration(part.iterator);
  LetGo();
}

void StepIterator::LetGo() {
  for (; arrived_ > 0; --arrived_) headrace_batch::Free(std::exchange(parts_[arrived_ - 1].batch, nullptr));
}

StepIterator::Outcome StepIterator::End() {
  LetGo();
  ended_ = true;
  return Outcome::kEnd;
}

Result<StepIterator::Outcome> StepIterator::Next(PartialStep partial, int64_t timeout_ms, headrace_batch** batches) {
  if (ended_) [[unlikely]]
    return Outcome::kEnd;
  for (; arrived_ < parts_.size(); ++arrived_) {
    Part& part = parts_[arrived_];
    part.batch = part.connection->TakePrepared(part.iterator);
    if (part.batch != nullptr) [[likely]]
      continue;
    ASSIGN_OR_RETURN(const Outcome outcome, Await(timeout_ms));
    if (outcome != Outcome::kStep) return outcome;
    break;
  }
  const uint64_t step = parts_[0].batch->view().step;
  uint32_t flags = 0;
  bool measured = true;
  for (const Part& part : parts_) {
    if (part.batch->view().step != step) [[unlikely]]
      return NotTogether(*parts_[0].batch, *part.batch);
    flags |= part.batch->view().flags;
    measured = measured && part.batch->measured;
  }
  if ((flags & ring::kPartialStep) != 0 && partial == PartialStep::kEnd) [[unlikely]]
    return End();
  position_.step = step + 1;
  if (!measured) [[unlikely]]
    RETURN_IF_ERROR(Measure());
  for (Part& part : parts_) *batches++ = std::exchange(part.batch, nullptr);
  arrived_ = 0;
  return Outcome::kStep;
}

Result<StepIterator::Outcome> StepIterator::Await(int64_t timeout_ms) {
  // The clock is read only where more than one ring shares the time.
  const bool timed = timeout_ms > 0 && parts_.size() > 1;
  Clock::time_point deadline;
  if (timed) deadline = Clock::now() + Milliseconds(std::min<int64_t>(timeout_ms, INT32_MAX));
  for (; arrived_ < parts_.size(); ++arrived_) {
    Part& part = parts_[arrived_];
    const int64_t left_ms = timed ? LeftMs(deadline) : timeout_ms;
    ASSIGN_OR_RETURN(const auto outcome, part.connection->Next(part.iterator, left_ms, &part.batch));
    if (outcome == ring::RingReader::Outcome::kTimeout) return Outcome::kTimeout;
    if (outcome == ring::RingReader::Outcome::kEndOfEpoch) return End();
  }
  return Outcome::kStep;
}

Status StepIterator::Measure() {
  for (const Part& part : parts_) {
    if (part.batch->measured) continue;
    if (Status measured = part.batch->Measure(); !measured.ok()) {
      LetGo();  // now, not when somebody asks again
      return measured;
    }
  }
  return {};
}

}  // namespace headrace::client
