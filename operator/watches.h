// The operator's caches: one informer for each resource it looks at, slimmed to what reconciling and admission read.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "operator/kube/informer.h"

namespace headrace::op {

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

 private:
  std::vector<std::unique_ptr<kube::Informer>> informers_;  // in the order of the accessors
  std::vector<std::string> plurals_;                        // of each
};

// How many inputs have each condition (Accepted, Ready, Degraded) at each status; Unknown: it has not been judged yet.
struct ConditionCount {
  std::string condition, status;
  size_t inputs = 0;
};
std::vector<ConditionCount> CountConditions(const kube::Store& inputs);

// Keeps what reconciling and admission read of a Job or StatefulSet; the rest goes.
void SlimWorkload(nlohmann::json& workload);
// ... of a Service: what ours is held to, and none of what the API server adds to it.
void SlimService(nlohmann::json& service);

}  // namespace headrace::op
