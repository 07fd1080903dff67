// Carries a decision out: server-side apply of the objects, removals, the loaders' keys, one status write if anything
// in it changed, then the events.
#pragma once

#include <functional>
#include <string>

#include "common/base/status.h"
#include "operator/kube/client.h"
#include "operator/kube/events.h"
#include "operator/reconcile/decision.h"
#include "operator/reconcile/own_writes.h"

namespace headrace::op {

struct ApplyDeps {
  // Not owned, none null.
  kube::Client* client;
  kube::EventRecorder* events;
  PeerKeys* peer_keys;
  OwnWrites* own_writes;
  Caches caches;
  std::function<void(const std::string& resource, bool written)> on_write;  // may be null
};

// Stops at the first failure: the status is written only when everything that it speaks of exists.
Status Apply(const ApplyDeps& deps, const Observed& observed, const Decision& decision);

// The status alone, if it changed: of a decision whose rest is put off.
Status ApplyStatus(const ApplyDeps& deps, const Observed& observed, const Decision& decision);

}  // namespace headrace::op
