#include "sidecar/source/quarantine.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "common/base/log.h"

namespace headrace::side {
namespace {

constexpr size_t kLogged = 100;  // the list has the rest
// A fraction is one of at least so many: the first record of a data set may well be a bad one.
constexpr double kLeastRecords = 10000;

}  // namespace

void Quarantine::Configure(const OnError& on_error, std::string path) {
  on_error_ = on_error;
  path_ = std::move(path);
}

Status Quarantine::Take(const Status& error) {
  if (!on_error_.skip || error.code() != Code::kCorrupt) return error;
  skipped_.fetch_add(1, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  if (!records_.insert(error.message()).second) return {};
  if (records_.size() <= kLogged) log::Warning("a record was left out", {{"reason", error.message()}});
  if (!path_.empty()) {
    std::ofstream(path_, std::ios::app) << nlohmann::json{{"reason", error.message()}}.dump() << "\n";
  }
  const double seen = static_cast<double>(good_.load(std::memory_order_relaxed) + records_.size());
  const bool fraction = on_error_.max_fraction > 0;
  const double most = fraction ? std::ceil(on_error_.max_fraction * std::max(seen, kLeastRecords))
                               : static_cast<double>(on_error_.max_skipped);
  if (static_cast<double>(records_.size()) <= most) return {};
  return Corrupt(
      "spec.onError.maxSkipped: " + std::to_string(records_.size()) +
      " records had to be left out, which is more than " +
      (fraction ? std::to_string(on_error_.max_fraction * 100) + " percent" : std::to_string(on_error_.max_skipped)) +
      "; mend the data or raise it; the last one: " + error.message());
}

}  // namespace headrace::side
