// The operator's caches: one informer for each resource it looks at, slimmed to what reconciling and admission read.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "operator/kube/informer.h"

namespace headrace::op {

// How many inputs have each condition (Accepted, Ready, Degraded) at each status; Unknown: it has not been judged yet.
// Counted as they come and go, so that asking costs nothing however many there are. Thread-safe.
class ConditionCounts {
 public:
  ConditionCounts();
  // Null: there was, or is, none.
  void OnChange(const nlohmann::json* before, const nlohmann::json* now);

  struct Count {
    std::string condition, status;
    int64_t inputs = 0;
  };
  std::vector<Count> Get() const;

 private:
  // REQUIRES mutex_.
  void Add(const nlohmann::json& input, int64_t one);

  mutable std::mutex mutex_;
  std::vector<Count> counts_;  // guarded by mutex_
};

class Watches {
 public:
  struct Options {
    // Called with "namespace/name" of an input that, or something of which, changed; on the informers' threads.
    std::function<void(const std::string& input_key)> on_change;
    // Gives each informer's InformerOptions::on_call. May be null.
    std::function<std::function<void(const char* verb, const Status&)>(const std::string& resource)> on_call = {};
  };
  // `transport` and `client` (not owned) must outlive this. Starts all informers.
  Watches(kube::HttpTransport* transport, kube::Client* client, Options options);

  // Whether every first list is in.
  bool synced() const;

  // The caches by the plural names of their resources.
  std::vector<std::pair<std::string, const kube::Store*>> stores() const;

  const kube::Store& inputs() const { return informers_[0]->store(); }
  const kube::Store& pods() const { return informers_[1]->store(); }
  const kube::Store& jobs() const { return informers_[2]->store(); }
  const kube::Store& stateful_sets() const { return informers_[3]->store(); }
  const kube::Store& config_maps() const { return informers_[4]->store(); }
  const kube::Store& services() const { return informers_[5]->store(); }
  const ConditionCounts& conditions() const { return conditions_; }

 private:
  ConditionCounts conditions_;                              // of the inputs; before the informers, who count in it
  std::vector<std::unique_ptr<kube::Informer>> informers_;  // in the order of the accessors
  std::vector<std::string> plurals_;                        // of each
};

// Keeps what reconciling and admission read of a Job or StatefulSet; the rest goes.
void SlimWorkload(nlohmann::json& workload);
// ... of a plan's ConfigMap: all of it, but for the spaces that are in the plan for people.
void SlimPlan(nlohmann::json& config_map);
// ... of a Service: what ours is held to, and none of what the API server adds to it.
void SlimService(nlohmann::json& service);

}  // namespace headrace::op
