#include "operator/reconcile/apply.h"

#include "common/spec/names.h"
#include "common/spec/object_names.h"
#include "operator/kube/object.h"
#include "operator/reconcile/rules.h"

namespace headrace::op {
namespace {

using nlohmann::json;

const kube::Resource& ResourceOf(const json& object) {
  return kube::StringAt(object, {"kind"}) == "Service" ? kube::kServices : kube::kConfigMaps;
}

Status ApplyObjects(kube::Client& client, PeerKeys& peer_keys, const Observed& observed, const Decision& decision) {
  for (const json& object : decision.apply) {
    RETURN_IF_ERROR(client.Apply(ResourceOf(object), object));
  }
  for (const kube::Object& object : decision.remove) {
    RETURN_IF_ERROR(
        client.Delete(kube::kConfigMaps, kube::NamespaceOf(*object), kube::NameOf(*object), kube::UidOf(*object)));
  }
  if (decision.peer_keys) {
    const json metadata = OwnedMetadata(observed, names::PeersSecretName(observed.name));
    RETURN_IF_ERROR(peer_keys.Take(*decision.peer_keys, metadata, observed.now));
  }
  return {};
}

}  // namespace

Status Apply(kube::Client& client, kube::EventRecorder& events, PeerKeys& peer_keys, const Observed& observed,
             const Decision& decision) {
  const json& input = *observed.input;
  if (const Status applied = ApplyObjects(client, peer_keys, observed, decision); !applied.ok()) {
    // What the API server refuses for good (a quota, a missing right) is for the user to see.
    if (!Retryable(applied.code())) {
      events.Record(input, kube::EventType::kWarning, "ApplyFailed", "Apply", applied.message());
    }
    return applied;
  }
  if (input.value("status", json::object()) != decision.status) {
    // No resourceVersion: the operator alone owns the status, and each decision holds the whole of it.
    RETURN_IF_ERROR(
        client.ApplyStatus(kube::kInputs, {{"apiVersion", kube::kInputs.api_version()},
                                           {"kind", kube::kInputs.kind},
                                           {"metadata", {{"name", observed.name}, {"namespace", observed.name_space}}},
                                           {"status", decision.status}}));
  }
  for (const DecidedEvent& event : decision.events) {
    events.Record(input, event.type, event.reason, event.action, event.note);
  }
  return {};
}

}  // namespace headrace::op
