#include "operator/reconcile/reconciler.h"

#include "common/spec/object_names.h"
#include "operator/kube/object.h"
#include "operator/reconcile/apply.h"
#include "operator/reconcile/observed.h"
#include "operator/reconcile/rules.h"

namespace headrace::op {

kube::Outcome Reconciler::Reconcile(const std::string& key) const {
  const kube::NamespacedName input = kube::SplitKey(key);
  const std::string secret = names::PeersSecretName(input.name);
  const Caches caches{deps_.inputs, deps_.pods, deps_.config_maps, deps_.services, deps_.jobs, deps_.stateful_sets};
  std::optional<Observed> observed = Observe(caches, key, deps_.now());
  if (!observed) {
    deps_.peer_keys->Forget(input.name_space, secret);
    return {};
  }
  // What caught up brings the key back; what never does is not waited for long.
  if (!deps_.own_writes->Shown(key, observed->now)) return {{}, std::chrono::milliseconds(1000)};
  if (observed->nothing_made()) deps_.peer_keys->PresumeNone(input.name_space, secret, observed->now);
  // What cannot be looked at is tried again, and keeps nothing else from being done.
  const Result<PeerKeysFacts> peer_keys = deps_.peer_keys->Look(input.name_space, secret, observed->now);
  if (peer_keys.ok()) observed->peer_keys = *peer_keys;
  const Decision decision = Decide(*observed);
  const ApplyDeps apply{deps_.client, deps_.events, deps_.peer_keys, deps_.own_writes, caches, deps_.on_write};
  if (decision.can_wait && deps_.has_time && !deps_.has_time(key)) {
    return {.status = ApplyStatus(apply, *observed, decision), .put_off = true};
  }
  const Status applied = Apply(apply, *observed, decision);
  return {applied.ok() ? peer_keys.status() : applied, decision.look_again};
}

}  // namespace headrace::op
