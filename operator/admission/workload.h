// Who a pod is among the pods of its run: found from its labels, annotations and owner, without configuration.
//
// workload.cc has the table of the kinds of workload, place_*.cc one kind each.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/status.h"

namespace headrace::op {

// A pod's place in its run.
struct World {
  std::string run_id;        // the same in all pods of a run, and in no other's; empty: the pod's own UID
  std::string run_id_label;  // instead of run_id: the pod's label that will hold it (templates, before they have a UID)
  std::string index_label;   // the pod's label that holds its index; empty: `index`
  int64_t index = 0;         // 0 is the whole run where index_label is empty, too
  int64_t num_workers = 1;
  // Where worker 0's loader is found: its host name within the pods' subdomain, or a whole address that the user gave
  // ("host:port"). Both empty: it cannot be told.
  std::string first_host;
  std::string host;       // to become the pod's host name, so that first_host is worker 0's; empty: it has one
  std::string subdomain;  // that the owner will give its pods; empty: none, or the pod has it already
  std::string coordinator;
  std::string owner;        // "JobSet/train/worker", where the pod's controller is not what users know; else empty
  bool reads_input = true;  // false: another step of the workload, which gets no loader
  bool placed = true;       // false: of a template, whose pods are told their place when they are made
};

// The object of that kind ("Job", "StatefulSet") and name in the pod's namespace; null if it is not known (yet).
// May wait a bounded time.
using FindOwner = std::function<std::shared_ptr<const nlohmann::json>(std::string_view kind, const std::string& name)>;

// The place of `pod`, created by a controller or by hand. The annotations headrace.dev/workers, /worker-index and /run
// win over what its workload says. Errors: InvalidArgument where the pod has no place, or an annotation or label is no
// number; Unavailable if the owner is not known yet.
Result<World> FindWorld(const nlohmann::json& pod, const FindOwner& find_owner);

// The place that pods made from the template of `owner` (a Job or StatefulSet, as written by a user) will have. Any
// other kind has one worker, unless the template's annotation says otherwise.
Result<World> WorldOfTemplate(const nlohmann::json& owner, const nlohmann::json& pod_template);

// The same of a JobSet's replicated job. No label holds the index of its pods, so they are not placed yet: the size of
// the run is all that is said.
Result<World> WorldOfReplicatedJob(const nlohmann::json& replicated_job, const nlohmann::json& pod_template);

}  // namespace headrace::op
