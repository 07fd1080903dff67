// Everything one decision needs, gathered from the caches: no decision, no request to the API server. But for the
// loaders' keys, which no cache holds: the reconciler adds what is known of them.
#pragma once

#include <chrono>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "operator/kube/store.h"
#include "operator/reconcile/peer_keys.h"

namespace headrace::op {

struct Observed {
  std::string name_space;
  std::string name;
  kube::Object input;
  std::vector<kube::Object> plans;      // ConfigMaps labelled as the input's plans, whoever owns them
  kube::Object service;                 // the headless Service; null if there is none
  std::vector<kube::Object> pods;       // opted in to this input and injected
  std::vector<std::string> uninjected;  // names of pods that opted in, have not ended, and have no loader
  // Jobs and StatefulSets whose runs the status knows, by UID, so that a run without pods is not taken for gone.
  std::map<std::string, kube::Object> owners;
  std::set<std::string> template_plans;    // hashes of plans that templates of Jobs are pinned to
  std::optional<PeerKeysFacts> peer_keys;  // none: they could not be looked at
  std::chrono::system_clock::time_point now;

  // Whether the caches show nothing that the operator makes for the input.
  bool nothing_made() const { return plans.empty() && service == nullptr; }
};

// Pods and ConfigMaps are indexed by InputKeyOf, Jobs by TemplateInputKeyOf (operator/pod/input_key.h): what else is in
// the namespace costs nothing.
struct Caches {
  const kube::Store* inputs = nullptr;
  const kube::Store* pods = nullptr;
  const kube::Store* config_maps = nullptr;
  const kube::Store* services = nullptr;
  const kube::Store* jobs = nullptr;
  const kube::Store* stateful_sets = nullptr;
};

// Nothing if the input is gone or going: what it owned goes with it, by its ownerReferences.
std::optional<Observed> Observe(const Caches& caches, const std::string& key,
                                std::chrono::system_clock::time_point now);

}  // namespace headrace::op
