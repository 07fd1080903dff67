#include "operator/reconcile/reconciler.h"

#include "operator/reconcile/apply.h"
#include "operator/reconcile/observed.h"
#include "operator/reconcile/rules.h"

namespace headrace::op {

kube::Outcome Reconciler::Reconcile(const std::string& key) const {
  const std::optional<Observed> observed =
      Observe({deps_.inputs, deps_.pods, deps_.config_maps, deps_.services}, key, deps_.now());
  if (!observed) return {};
  const Decision decision = Decide(*observed);
  return {Apply(*deps_.client, *deps_.events, *observed, decision), decision.look_again};
}

}  // namespace headrace::op
