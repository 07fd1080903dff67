#include "cli/bench_print.h"

#include <algorithm>
#include <cstdio>

#include "cli/top_print.h"
#include "cli/verdict.h"

namespace headrace::cli {
namespace {

struct Sums {
  double records = 0;
  double batches = 0;
  double bytes = 0;
  double bytes_read = 0;
};

Sums SumsOf(const std::vector<LoaderRates>& workers) {
  Sums sums;
  for (const LoaderRates& worker : workers) {
    sums.bytes_read += worker.rates.bytes_read;
    for (const LoaderSample::Replica& replica : worker.rates.replicas) {
      sums.records += replica.records;
      sums.batches += replica.batches;
      sums.bytes += replica.bytes;
    }
  }
  return sums;
}

std::string Line(const char* what, const std::string& value, const char* unit) {
  char line[160];
  std::snprintf(line, sizeof line, "%-12s %12s %s\n", what, value.c_str(), unit);
  return line;
}

std::string Fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string StageLine(const char* name, const LoaderSample::Stage& stage, double threads) {
  const double of = std::max(threads, 1.0);
  char line[160];
  std::snprintf(line, sizeof line, "%-8s %8.0f %8s %18s %18s\n", name, threads, Percent(stage.busy / of).c_str(),
                Percent(stage.blocked_on_input).c_str(), Percent(stage.blocked_on_output).c_str());
  return line;
}

// The worker whose trainer waited most: steps are as fast as the slowest worker's.
size_t Slowest(const std::vector<LoaderRates>& workers) {
  const auto wait = [](const LoaderRates& worker) {
    double most = 0;
    for (const LoaderSample::Replica& replica : worker.rates.replicas) most = std::max(most, replica.trainer_wait);
    return most;
  };
  const auto found =
      std::max_element(workers.begin(), workers.end(), [&](const auto& a, const auto& b) { return wait(a) < wait(b); });
  return static_cast<size_t>(found - workers.begin());
}

}  // namespace

std::string PrintBench(const BenchResult& result) {
  const Sums sums = SumsOf(result.workers);
  const double records = sums.records * result.seconds;
  std::string text = Line("records", Rate(sums.records), "a second");
  text += Line("batches", Rate(sums.batches), "a second, of one replica each");
  text += Line("delivered", Megabytes(sums.bytes), "MB/s of tensors");
  text += Line("read", Megabytes(sums.bytes_read), "MB/s from storage");
  text += Line("first batch", Fixed(result.first_batch_ms, 0), "ms after the start");
  text += Line("CPU", records > 0 ? Fixed(result.cpu_seconds / records * 1e6, 2) : "-", "seconds per million records");
  text += Line("CPUs", Fixed(result.cpu_seconds / result.seconds, 2), "in use by the loaders");
  text += Line("memory", Megabytes(result.memory_bytes), "MB of the loaders at their most, with their rings");
  if (result.workers.empty()) return text;

  const size_t slowest = Slowest(result.workers);
  const LoaderSample& rates = result.workers[slowest].rates;
  text += "\nWhere the time went";
  if (result.workers.size() > 1) text += ", on worker " + std::to_string(slowest) + ", whose trainer waited most";
  text += ":\nstage     threads     busy  waits for input  waits for output\n";
  text += StageLine("read", rates.read, 1);
  text += StageLine("decode", rates.decode, rates.decode_threads);
  const Verdict verdict = Judge(result.workers[slowest]);
  // Here the trainer does nothing but take batches.
  if (verdict.limit == Limit::kTrainer) {
    return text + "\nNo stage is the limit: batches come as fast as one process takes them out of its ring.\n";
  }
  std::string sentence = verdict.sentence;
  if (!sentence.empty()) sentence[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(sentence[0])));
  return text + "\n" + sentence + ".\n" + Remedy(verdict.limit) + "\n";
}

}  // namespace headrace::cli
