// Who has what, and so how many steps an epoch has: the coordinator's account of a run. No threads, no sockets.
//
// An epoch has as many steps as the worker with the most. It is closed, its number of steps final, once every worker
// has ended in it or is in a later one. Reports only ever add: what a worker has produced stays produced, since order
// is arithmetic; so a report that is repeated, late or of a restarted worker does no harm.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace headrace::side {

// What is known of one epoch: it has at least this many steps, exactly as many if closed.
struct EpochKnowledge {
  int64_t steps = 0;
  bool closed = false;
  bool operator==(const EpochKnowledge&) const = default;
};

class Ledger {
 public:
  explicit Ledger(int64_t num_workers);

  // The worker had produced `steps` steps of an epoch that it has left, or will leave with the next Report.
  void AddFinal(uint64_t epoch, int64_t steps);
  void Report(int64_t worker, uint64_t epoch, int64_t steps, bool ended);

  EpochKnowledge Of(uint64_t epoch) const;
  // The earliest epoch that a worker is in; what lies below is forgotten.
  uint64_t floor() const { return positions_.begin()->first; }
  // The first epoch that cannot be closed without `worker`.
  uint64_t FirstOpenOf(int64_t worker) const;
  // The epochs of which anything is known, ascending.
  std::vector<uint64_t> Epochs() const;

 private:
  using Position = std::pair<uint64_t, bool>;  // epoch, ended; in the order in which a worker takes them

  std::vector<Position> of_worker_;
  std::multiset<Position> positions_;
  std::map<uint64_t, int64_t> steps_;  // the most of any worker
};

}  // namespace headrace::side
