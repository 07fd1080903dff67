// The keys of the loaders: there before the first pod, renewed long before they run out.
#include <algorithm>

#include "operator/kube/object.h"
#include "operator/reconcile/rules.h"

namespace headrace::op {
namespace {

using namespace std::chrono_literals;

// A kubelet brings a changed Secret into its pods within two minutes or so; one that was cut off needs longer.
constexpr auto kSpread = 24h;
// A pod that waits for the Secret says nothing by which its absence would be noticed.
constexpr auto kWhilePodsStart = 60s;
constexpr auto kLongestPause = 12h;

WallTime Due(const Lifetime& lifetime) { return lifetime.from + (lifetime.until - lifetime.from) * 2 / 3; }

std::optional<PeerKeysStep> StepOf(const PeerKeysFacts& facts, const std::string& owner_uid, WallTime now) {
  // Left by an earlier input of this name: the garbage collector would take it from under our pods.
  if (!facts.exists || !facts.sound || facts.owner_uid != owner_uid) return PeerKeysStep::kMake;
  if (now >= Due(facts.authority)) return PeerKeysStep::kAddAuthority;
  const bool spread = facts.current || now >= facts.authority.from + kSpread;
  if (spread && (!facts.current || now >= Due(facts.certificate))) return PeerKeysStep::kRenewCertificate;
  return {};
}

}  // namespace

void PeersRule(Draft& draft) {
  const Observed& observed = draft.observed;
  constexpr Topology kSeveral{.num_workers = 2};  // runs to come may have
  if (!draft.plan || !AgreesOnEnds(*draft.plan, kSeveral) || !observed.peer_keys) return;
  draft.decision.peer_keys = StepOf(*observed.peer_keys, kube::UidOf(*observed.input), observed.now);
  const bool starting = std::any_of(draft.runs.begin(), draft.runs.end(),
                                    [](const Run& run) { return run.active && run.ready < run.desired; });
  const std::chrono::milliseconds pause = starting ? std::chrono::milliseconds(kWhilePodsStart) : kLongestPause;
  draft.decision.look_again = std::min(draft.decision.look_again.value_or(pause), pause);
}

}  // namespace headrace::op
