// Brings what exists for one DistributedInput in line with its spec: observe (caches) -> decide (pure) -> apply. Where
// many inputs are new at once, each has its status first (docs/decisions/0031-the-status-first-in-a-crowd.md).
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "operator/kube/client.h"
#include "operator/kube/controller.h"
#include "operator/kube/events.h"
#include "operator/kube/store.h"
#include "operator/reconcile/own_writes.h"
#include "operator/reconcile/peer_keys.h"

namespace headrace::op {

class Reconciler {
 public:
  // Pointers are not owned and must outlive the reconciler.
  struct Deps {
    kube::Client* client = nullptr;
    const kube::Store* inputs = nullptr;
    const kube::Store* pods = nullptr;
    const kube::Store* config_maps = nullptr;
    const kube::Store* services = nullptr;
    const kube::Store* jobs = nullptr;
    const kube::Store* stateful_sets = nullptr;
    kube::EventRecorder* events = nullptr;
    PeerKeys* peer_keys = nullptr;
    OwnWrites* own_writes = nullptr;
    std::function<std::chrono::system_clock::time_point()> now = std::chrono::system_clock::now;
    // Whether now is the time for what can wait (WorkQueue::HasTimeFor). Null: always.
    std::function<bool(const std::string& key)> has_time = {};
    // Called for each object that a reconciliation wants: its resource, and whether it had to be written. May be null.
    std::function<void(const std::string& resource, bool written)> on_write = {};
  };
  explicit Reconciler(Deps deps) : deps_(std::move(deps)) {}

  // `key` is "namespace/name". Thread-safe for different keys.
  kube::Outcome Reconcile(const std::string& key) const;

 private:
  const Deps deps_;
};

}  // namespace headrace::op
