// The headless Service through which the workers of an input find each other by name.
#include "common/spec/names.h"
#include "common/spec/object_names.h"
#include "operator/kube/object.h"
#include "operator/reconcile/rules.h"

namespace headrace::op {
namespace {

using nlohmann::json;

// Whether `object` has everything that `wanted` has, with the same values; the API server adds fields of its own.
bool Contains(const json& object, const json& wanted) {
  if (wanted.is_object()) {
    if (!object.is_object()) return false;
    for (const auto& [key, value] : wanted.items()) {
      const auto found = object.find(key);
      if (found == object.end() || !Contains(*found, value)) return false;
    }
    return true;
  }
  if (wanted.is_array()) {
    if (!object.is_array() || object.size() != wanted.size()) return false;
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (!Contains(object[i], wanted[i])) return false;
    }
    return true;
  }
  return object == wanted;
}

}  // namespace

void ServiceRule(Draft& draft) {
  const Observed& observed = draft.observed;
  json service = {
      {"apiVersion", "v1"},
      {"kind", "Service"},
      {"metadata", OwnedMetadata(observed, names::ServiceName(observed.name))},
      {"spec",
       {{"clusterIP", "None"},
        {"publishNotReadyAddresses", true},  // loaders speak to each other before they are ready
        {"selector", {{names::kInputLabel, observed.name}}},
        {"ports",
         json::array({{{"name", names::kLoaderPortName}, {"port", names::kLoaderPort}, {"protocol", "TCP"}},
                      {{"name", names::kPeersPortName}, {"port", names::kPeersPort}, {"protocol", "TCP"}}})}}}};
  const auto as_wanted = [&](const char* part) {
    return Contains(kube::ObjectAt(*observed.service, {part}), service.at(part));
  };
  if (observed.service != nullptr && as_wanted("metadata") && as_wanted("spec")) return;
  draft.decision.apply.push_back(std::move(service));
}

}  // namespace headrace::op
