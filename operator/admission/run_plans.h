// Which plan a run reads by: the one that its first pod was given, though the input may change while the run lives.
#pragma once

#include <deque>
#include <map>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "common/spec/plan.h"
#include "operator/kube/store.h"

namespace headrace::op {

// Thread-safe.
class RunPlans {
 public:
  struct Run {
    std::string name_space;
    std::string input;
    std::string id;  // empty: a pod by itself, which begins its own
  };
  // The caches (not owned; may be null: nothing is known; indexed by InputKeyOf) must outlive this.
  RunPlans(const kube::Store* pods, const kube::Store* config_maps) : pods_(pods), config_maps_(config_maps) {}

  // The plan that the run is bound to, where it is not the current one and its ConfigMap is still there. By, in this
  // order: what the pod says (a pod injected before), what this process gave the run's pods, what the input's status
  // says of the run, what the run's other pods have.
  std::optional<Plan> Find(const Run& run, const nlohmann::json& pod, const nlohmann::json& input,
                           const std::string& current_hash) const;

  // A pod of the run was given this plan: the caches will say so only when its creation has come back.
  void Remember(const Run& run, const nlohmann::json& pod, const std::string& hash);

 private:
  std::string HashOf(const Run& run, const nlohmann::json& pod, const nlohmann::json& input,
                     const std::string& current_hash) const;
  std::string Remembered(const std::string& key) const;

  const kube::Store* const pods_;
  const kube::Store* const config_maps_;
  mutable std::mutex mutex_;
  std::map<std::string, std::string> hashes_;  // both guarded by mutex_
  std::deque<std::string> oldest_;
};

}  // namespace headrace::op
