// What the rules come to for one input: values only. apply.cc carries it out.
#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/spec/plan.h"
#include "operator/kube/events.h"
#include "operator/reconcile/observed.h"
#include "operator/reconcile/peer_keys.h"

namespace headrace::op {

struct DecidedEvent {
  kube::EventType type = kube::EventType::kNormal;
  std::string reason;
  std::string action;
  std::string note;
};

struct Decision {
  std::vector<nlohmann::json> apply;      // whole objects, by server-side apply
  std::vector<kube::Object> remove;       // ConfigMaps
  nlohmann::json status;                  // the whole status
  std::vector<DecidedEvent> events;       // recorded once the status is written
  std::optional<PeerKeysStep> peer_keys;  // making keys is random, so it is left to apply
  std::optional<std::chrono::milliseconds> look_again;
  // Nobody uses what is to be made, all of it: others may come first, but for the status, by which people see whether
  // the input is right. What is decided later then has the events of now.
  bool can_wait = false;
};

// One run as its pods show it.
struct Run {
  std::string uid;        // its id, mostly its owner's UID
  std::string owner;      // "Job/train"
  std::string plan_hash;  // what its pods are pinned to
  std::string started;    // creationTimestamp of its oldest pod
  int64_t desired = 0;
  int64_t ready = 0;      // loader ready, or pod done
  int64_t completed = 0;  // pod done
  int64_t replicas_per_worker = 1;
  bool active = false;  // some pod has not ended
  bool asks_for_gpus = false;
  std::string failure;  // "pod train-0: NotFound: ...", of the first failed loader; empty if none
  std::string failure_reason = "LoaderFailed";
  std::string waiting;  // what it waits for, for people
};

// What the rules hand from one to the next.
struct Draft {
  const Observed& observed;
  std::optional<Plan> plan;  // none: the spec is invalid
  std::string invalid;       // why
  std::vector<Run> runs;     // newest first
  Decision decision;
};

}  // namespace headrace::op
