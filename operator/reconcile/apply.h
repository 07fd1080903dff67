// Carries a decision out: server-side apply of the objects, removals, the loaders' keys, one status write if anything
// in it changed, then the events.
#pragma once

#include "common/base/status.h"
#include "operator/kube/client.h"
#include "operator/kube/events.h"
#include "operator/reconcile/decision.h"

namespace headrace::op {

// Stops at the first failure: the status is written only when everything that it speaks of exists.
Status Apply(kube::Client& client, kube::EventRecorder& events, PeerKeys& peer_keys, const Observed& observed,
             const Decision& decision);

}  // namespace headrace::op
