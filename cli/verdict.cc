#include "cli/verdict.h"

#include <algorithm>
#include <cstdio>

namespace headrace::cli {
namespace {

// Below this share of its time a trainer is not said to wait: the next batch came while it asked.
constexpr double kWaits = 0.05;
// Two sides that each wait for the other for more than this are not slow: they do not meet.
constexpr double kTurns = 0.2;
// A stage that is at work, or waits for another, for less is idle.
constexpr double kIdle = 0.05;

// The replica that waits most.
size_t MostWaiting(const LoaderSample& rates) {
  size_t most = 0;
  for (size_t r = 1; r < rates.replicas.size(); ++r) {
    if (rates.replicas[r].trainer_wait > rates.replicas[most].trainer_wait) most = r;
  }
  return most;
}

// The replica for whose ring the loader waits most.
size_t MostFull(const LoaderSample& rates) {
  size_t most = 0;
  for (size_t r = 1; r < rates.replicas.size(); ++r) {
    if (rates.replicas[r].ring_full > rates.replicas[most].ring_full) most = r;
  }
  return most;
}

std::string Threads(double threads) {
  char text[64];
  std::snprintf(text, sizeof text, "%.0f thread%s", threads, threads == 1 ? "" : "s");
  return text;
}

Verdict JudgeStages(const LoaderSample& rates, const std::string& waits) {
  const LoaderSample::Stage& read = rates.read;
  const LoaderSample::Stage& decode = rates.decode;
  if (read.busy + read.blocked_on_input + decode.busy + decode.blocked_on_input < kIdle) {
    return {Limit::kOthers, waits + ", and no stage of this loader is at work: the loaders of other workers are"};
  }
  if (decode.blocked_on_output > kTurns) {
    return {Limit::kTurns, waits + ", and the loader for it " + Percent(decode.blocked_on_output) +
                               ", by turns: handing batches over is the limit"};
  }
  // Records are read from storage as they are decoded: reading is always ahead, and decoding waits all the same.
  if (read.blocked_on_output > 0.9 && decode.blocked_on_input > std::max(decode.busy, 0.5)) {
    return {Limit::kDecodeInput, waits + ": storage is the limit, from which records are read as they are decoded"};
  }
  if (std::min(read.blocked_on_output, decode.blocked_on_input) > kTurns) {
    return {Limit::kTurns, waits + ", and reading and decoding for one another, by turns (" +
                               Percent(read.blocked_on_output) + " and " + Percent(decode.blocked_on_input) +
                               "): handing over is the limit"};
  }
  // Whoever waits for the other is not the limit.
  if (read.blocked_on_output > decode.blocked_on_input) {
    const double share = decode.busy / std::max(rates.decode_threads, 1.0);
    return {Limit::kDecode,
            waits + ": decoding is the limit (" + Threads(rates.decode_threads) + ", " + Percent(share) + " busy)"};
  }
  if (read.blocked_on_input > read.busy) {
    return {Limit::kInput, waits + ": what is read from is the limit (reading waits for it " +
                               Percent(read.blocked_on_input) + " of the time)"};
  }
  return {Limit::kRead, waits + ": reading is the limit (1 thread, " + Percent(read.busy) + " busy)"};
}

}  // namespace

std::string Percent(double share) {
  char text[16];
  std::snprintf(text, sizeof text, "%.0f %%", 100 * std::clamp(share, 0.0, 1.0));
  return text;
}

Verdict Judge(const LoaderRates& interval) {
  const LoaderSample& rates = interval.rates;
  if (rates.replicas.empty()) return {Limit::kNothingTaken, "no replica"};
  const size_t waiting = MostWaiting(rates);
  const double wait = rates.replicas[waiting].trainer_wait;
  const bool several = rates.replicas.size() > 1;
  if (wait < kWaits) {
    const double taken =
        std::max_element(rates.replicas.begin(), rates.replicas.end(), [](const auto& a, const auto& b) {
          return a.batches < b.batches;
        })->batches;
    if (taken == 0) return {Limit::kNothingTaken, "no batch is taken: the trainer computes, or is not there"};
    return {Limit::kTrainer, "the trainer does not wait: it is the limit (the loader waits for it " +
                                 Percent(rates.decode.blocked_on_output) + " of the time)"};
  }
  const std::string waits =
      (several ? "replica " + std::to_string(waiting) + "'s trainer" : std::string("the trainer")) + " waits " +
      Percent(wait) + " of the time";
  const size_t full = MostFull(rates);
  if (full != waiting && rates.replicas[full].ring_full > 0.5) {
    return {Limit::kReplica, waits + ": replica " + std::to_string(full) + " does not take its batches"};
  }
  return JudgeStages(rates, waits);
}

std::string Remedy(Limit limit) {
  switch (limit) {
    case Limit::kNothingTaken: return "Look at the trainer.";
    case Limit::kTrainer: return "The data keeps up: nothing of the loader needs to be faster.";
    case Limit::kInput:
      return "Put the files where they are read faster (a local disk, a volume nearer to the nodes), in fewer and "
             "larger "
             "ones, or make the dataset function faster; more CPUs do not help.";
    case Limit::kRead:
      return "Use more workers, each of which reads its own share with a thread of its own; or store the data so that "
             "it takes less to read: not compressed, in a format that has an index (FixedLength, NumPy).";
    case Limit::kDecodeInput:
      return "Put the files where they are read faster, or shuffle by shuffle with a bufferSize, which reads in order.";
    case Limit::kDecode:
      return "Give the loader more CPUs (the limit of its container), or use more workers; or store features so that "
             "they take less to decode: as FixedLength or NumPy, images smaller.";
    case Limit::kTurns:
      return "See that loader and trainer have CPUs of their own, which other programs do not take; use larger "
             "batches, more "
             "records than a few batches an epoch, or a larger spec.delivery.prefetchSteps.";
    case Limit::kReplica: return "All replicas of a worker must take their batches: look at the trainer of that one.";
    case Limit::kOthers: return "Epochs end together: look at the other workers' loaders.";
  }
  return "";
}

}  // namespace headrace::cli
