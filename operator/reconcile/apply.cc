#include "operator/reconcile/apply.h"

#include "common/spec/names.h"
#include "common/spec/object_names.h"
#include "operator/kube/object.h"
#include "operator/reconcile/rules.h"

namespace headrace::op {
namespace {

using nlohmann::json;

// The write that was made, for the next reconciliation and for the metrics.
void Note(const ApplyDeps& deps, const Observed& observed, const kube::Store* cache, const kube::Resource& resource,
          const json& written) {
  const std::string key = observed.name_space + "/" + observed.name;
  deps.own_writes->Note(key, cache, written, observed.now);
  if (deps.on_write) deps.on_write(resource.plural, true);
}

Status ApplyObjects(const ApplyDeps& deps, const Observed& observed, const Decision& decision) {
  for (const json& object : decision.apply) {
    const bool service = kube::StringAt(object, {"kind"}) == "Service";
    const kube::Resource& resource = service ? kube::kServices : kube::kConfigMaps;
    ASSIGN_OR_RETURN(const json written, deps.client->Apply(resource, object));
    Note(deps, observed, service ? deps.caches.services : deps.caches.config_maps, resource, written);
  }
  for (const kube::Object& object : decision.remove) {
    RETURN_IF_ERROR(deps.client->Delete(kube::kConfigMaps, kube::NamespaceOf(*object), kube::NameOf(*object),
                                        kube::UidOf(*object)));
  }
  if (decision.peer_keys) {
    const json metadata = OwnedMetadata(observed, names::PeersSecretName(observed.name));
    RETURN_IF_ERROR(deps.peer_keys->Take(*decision.peer_keys, metadata, observed.now));
  }
  return {};
}

}  // namespace

Status ApplyStatus(const ApplyDeps& deps, const Observed& observed, const Decision& decision) {
  if (kube::ObjectAt(*observed.input, {"status"}) == decision.status) {
    if (deps.on_write) deps.on_write(kube::kInputs.plural, false);
    return {};
  }
  // No resourceVersion: the operator alone owns the status, and each decision holds the whole of it.
  ASSIGN_OR_RETURN(const json written,
                   deps.client->ApplyStatus(
                       kube::kInputs, {{"apiVersion", kube::kInputs.api_version()},
                                       {"kind", kube::kInputs.kind},
                                       {"metadata", {{"name", observed.name}, {"namespace", observed.name_space}}},
                                       {"status", decision.status}}));
  Note(deps, observed, deps.caches.inputs, kube::kInputs, written);
  return {};
}

Status Apply(const ApplyDeps& deps, const Observed& observed, const Decision& decision) {
  const json& input = *observed.input;
  if (const Status applied = ApplyObjects(deps, observed, decision); !applied.ok()) {
    // A quota or a missing right is for the user to see, though it may pass. That somebody else wrote is nobody's news.
    if (applied.code() != Code::kConflict) {
      deps.events->Record(input, kube::EventType::kWarning, "ApplyFailed", "Apply", applied.message());
    }
    return applied;
  }
  RETURN_IF_ERROR(ApplyStatus(deps, observed, decision));
  for (const DecidedEvent& event : decision.events) {
    deps.events->Record(input, event.type, event.reason, event.action, event.note);
  }
  return {};
}

}  // namespace headrace::op
