#include "cli/top_print.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "cli/verdict.h"

namespace headrace::cli {
namespace {

constexpr size_t kColumns = 9;
using Row = std::array<std::string, kColumns>;

const Row kTitles = {"WORKER", "REPLICA",       "RECORDS/s", "MB/s",       "READ MB/s",
                     "RING",   "TRAINER WAITS", "READ BUSY", "DECODE BUSY"};

std::string Printable(std::string text) {
  for (char& c : text) c = c < ' ' || c > '~' ? '?' : c;
  return text;
}

// "1.6 of 2"
std::string BusyThreads(double busy, double threads) {
  char text[64];
  std::snprintf(text, sizeof text, "%.1f of %.0f", busy, threads);
  return text;
}

void AddRows(const LoaderView& loader, std::vector<Row>* rows) {
  const LoaderSample& rates = loader.rates.rates;
  for (size_t r = 0; r < rates.replicas.size(); ++r) {
    const LoaderSample::Replica& replica = rates.replicas[r];
    char ring[64];
    std::snprintf(ring, sizeof ring, "%.0f/%.0f", replica.ring_batches, replica.ring_slots);
    Row row = {"",
               std::to_string(r),
               Rate(replica.records),
               Megabytes(replica.bytes),
               "",
               ring,
               Percent(replica.trainer_wait),
               "",
               ""};
    if (r == 0) {  // what is the loader's, once
      row[0] = Printable(loader.name);
      row[4] = Megabytes(rates.bytes_read);
      row[7] = Percent(rates.read.busy);
      row[8] = BusyThreads(rates.decode.busy, rates.decode_threads);
    }
    rows->push_back(std::move(row));
  }
}

Row SumOf(const std::vector<LoaderView>& loaders) {
  double records = 0;
  double bytes = 0;
  double read = 0;
  for (const LoaderView& loader : loaders) {
    if (!loader.status.ok()) continue;
    read += loader.rates.rates.bytes_read;
    for (const LoaderSample::Replica& replica : loader.rates.rates.replicas) {
      records += replica.records;
      bytes += replica.bytes;
    }
  }
  return {"all", "", Rate(records), Megabytes(bytes), Megabytes(read), "", "", "", ""};
}

using Widths = std::array<size_t, kColumns>;

void Widen(const Row& row, Widths* widths) {
  for (size_t c = 0; c < kColumns; ++c) (*widths)[c] = std::max((*widths)[c], row[c].size());
}

// The name to the left, numbers to the right.
std::string Line(const Row& row, const Widths& widths) {
  std::string line = row[0] + std::string(widths[0] - row[0].size(), ' ');
  for (size_t c = 1; c < kColumns; ++c) line += "  " + std::string(widths[c] - row[c].size(), ' ') + row[c];
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

}  // namespace

std::string Rate(double value) {
  char digits[64];
  std::snprintf(digits, sizeof digits, value < 100 && value > 0 ? "%.1f" : "%.0f", value);
  std::string text = digits;
  for (size_t at = std::min(text.find('.'), text.size()); at > 3; at -= 3) text.insert(at - 3, 1, ',');
  return text;
}

std::string Megabytes(double bytes) { return Rate(bytes / 1e6); }

std::string PrintTop(const std::vector<LoaderView>& loaders) {
  std::vector<std::vector<Row>> rows(loaders.size());
  const Row sum = SumOf(loaders);
  Widths widths{};
  Widen(kTitles, &widths);
  Widen(sum, &widths);
  for (size_t i = 0; i < loaders.size(); ++i) {
    if (loaders[i].status.ok()) AddRows(loaders[i], &rows[i]);
    for (const Row& row : rows[i]) Widen(row, &widths);
  }
  std::string text = Line(kTitles, widths);
  for (size_t i = 0; i < loaders.size(); ++i) {
    const LoaderView& loader = loaders[i];
    for (const Row& row : rows[i]) text += Line(row, widths);
    text += loader.status.ok() ? "  -> " + Judge(loader.rates).sentence + "\n"
                               : Printable(loader.name) + "\n  -> " + Printable(loader.status.message()) + "\n";
  }
  if (loaders.size() > 1) text += Line(sum, widths);
  return text;
}

}  // namespace headrace::cli
