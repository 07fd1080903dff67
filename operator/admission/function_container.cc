#include "operator/admission/function_container.h"

#include <nlohmann/json.hpp>

#include "common/spec/names.h"

namespace headrace::op {

using nlohmann::json;

json RestrictedSecurityContext() {
  return {{"runAsNonRoot", true},
          {"allowPrivilegeEscalation", false},
          {"readOnlyRootFilesystem", true},
          {"capabilities", {{"drop", json::array({"ALL"})}}},
          {"seccompProfile", {{"type", "RuntimeDefault"}}}};
}

json FunctionContainer(const FunctionSource& function) {
  json container = json::parse(function.container);
  container["name"] = names::kFunctionContainer;
  container["restartPolicy"] = "Always";  // a native sidecar
  json security = RestrictedSecurityContext();
  security.erase("readOnlyRootFilesystem");  // the user's program may write where it likes
  if (container.contains("securityContext")) security.update(container["securityContext"]);
  container["securityContext"] = std::move(security);
  container["env"].push_back({{"name", names::kEnvDir}, {"value", names::kRunDir}});
  container["volumeMounts"].push_back({{"name", names::kRunVolume}, {"mountPath", names::kRunDir}});
  return container;
}

}  // namespace headrace::op
