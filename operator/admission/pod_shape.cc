#include "operator/admission/pod_shape.h"

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "operator/kube/object.h"

namespace headrace::op {
namespace {

using nlohmann::json;

enum class Type { kText, kTexts, kWhole, kTruth, kObject, kObjects };

struct Field {
  std::string_view name;
  Type type;
  std::span<const Field> fields = {};  // of the object, or of each object in the list
};

constexpr Field kNamed[] = {{"name", Type::kText}};
constexpr Field kEnv[] = {{"name", Type::kText}, {"value", Type::kText}};
constexpr Field kMount[] = {{"name", Type::kText}, {"mountPath", Type::kText}};
constexpr Field kClaim[] = {{"name", Type::kText}, {"request", Type::kText}};
constexpr Field kResources[] = {{"limits", Type::kObject}, {"claims", Type::kObjects, kClaim}};
constexpr Field kSecurity[] = {{"runAsUser", Type::kWhole}};
constexpr Field kContainer[] = {{"name", Type::kText},
                                {"restartPolicy", Type::kText},
                                {"env", Type::kObjects, kEnv},
                                {"volumeMounts", Type::kObjects, kMount},
                                {"resources", Type::kObject, kResources},
                                {"securityContext", Type::kObject, kSecurity}};
constexpr Field kPodSpec[] = {{"hostname", Type::kText},
                              {"subdomain", Type::kText},
                              {"securityContext", Type::kObject, kSecurity},
                              {"volumes", Type::kObjects, kNamed},
                              {"resourceClaims", Type::kObjects, kClaim},
                              {"initContainers", Type::kObjects, kContainer},
                              {"containers", Type::kObjects, kContainer}};
constexpr Field kOwnerReference[] = {{"apiVersion", Type::kText},
                                     {"kind", Type::kText},
                                     {"name", Type::kText},
                                     {"uid", Type::kText},
                                     {"controller", Type::kTruth}};
constexpr Field kMetadata[] = {{"name", Type::kText},         {"generateName", Type::kText},
                               {"uid", Type::kText},          {"labels", Type::kTexts},
                               {"annotations", Type::kTexts}, {"ownerReferences", Type::kObjects, kOwnerReference}};
constexpr Field kPod[] = {{"metadata", Type::kObject, kMetadata}, {"spec", Type::kObject, kPodSpec}};

constexpr Field kJobSpec[] = {{"completions", Type::kWhole}, {"template", Type::kObject, kPod}};
constexpr Field kJobTemplate[] = {{"metadata", Type::kObject, kMetadata}, {"spec", Type::kObject, kJobSpec}};
constexpr Field kReplicatedJob[] = {
    {"name", Type::kText}, {"replicas", Type::kWhole}, {"template", Type::kObject, kJobTemplate}};
constexpr Field kOrdinals[] = {{"start", Type::kWhole}};
constexpr Field kOwnerSpec[] = {{"completions", Type::kWhole},
                                {"replicas", Type::kWhole},
                                {"completionMode", Type::kText},
                                {"serviceName", Type::kText},
                                {"ordinals", Type::kObject, kOrdinals},
                                {"template", Type::kObject, kPod},
                                {"replicatedJobs", Type::kObjects, kReplicatedJob}};
constexpr Field kOwner[] = {{"apiVersion", Type::kText},
                            {"kind", Type::kText},
                            {"metadata", Type::kObject, kMetadata},
                            {"spec", Type::kObject, kOwnerSpec}};

constexpr Field kRequested[] = {{"resource", Type::kText}};
constexpr Field kRequest[] = {{"operation", Type::kText},
                              {"namespace", Type::kText},
                              {"dryRun", Type::kTruth},
                              {"resource", Type::kObject, kRequested},
                              {"object", Type::kObject}};

std::string_view NameOf(Type type) {
  switch (type) {
    case Type::kText: return "a text";
    case Type::kTexts: return "an object of texts";
    case Type::kWhole: return "a whole number";
    case Type::kTruth: return "true or false";
    case Type::kObject: return "an object";
    case Type::kObjects: return "a list of objects";
  }
  return "";
}

std::string_view TypeOf(const json& value) {
  switch (value.type()) {
    case json::value_t::object: return "an object";
    case json::value_t::array: return "a list";
    case json::value_t::string: return "a text";
    case json::value_t::boolean: return "a boolean";
    case json::value_t::null: return "no value";
    default: return "a number";
  }
}

Status Wrong(const std::string& where, const json& value, std::string_view wanted) {
  constexpr size_t kMostShown = 60;
  // Only scalars are shown as they are: the others may be large.
  std::string shown = value.is_structured() ? (value.empty() ? value.dump() : "the value")
                                            : value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (shown.size() > kMostShown) shown = "the value";
  return InvalidArgument((where.empty() ? "the object itself" : where) + ": " + shown + " is " +
                         std::string(TypeOf(value)) + ": write " + std::string(wanted));
}

std::string Under(const std::string& where, std::string_view name) {
  return where.empty() ? std::string(name) : where + "." + std::string(name);
}

Status CheckFields(const json& object, std::span<const Field> fields, const std::string& where);

Status Check(const json& value, const Field& field, const std::string& where) {
  switch (field.type) {
    case Type::kText: return value.is_string() ? Status() : Wrong(where, value, NameOf(field.type));
    case Type::kWhole: return value.is_number_integer() ? Status() : Wrong(where, value, NameOf(field.type));
    case Type::kTruth: return value.is_boolean() ? Status() : Wrong(where, value, NameOf(field.type));
    case Type::kObject: return CheckFields(value, field.fields, where);
    case Type::kTexts:
      if (!value.is_object()) return Wrong(where, value, NameOf(field.type));
      for (const auto& [key, text] : value.items()) {
        if (!text.is_string()) return Wrong(where + "[" + key + "]", text, NameOf(Type::kText));
      }
      return {};
    case Type::kObjects:
      if (!value.is_array()) return Wrong(where, value, NameOf(field.type));
      for (size_t i = 0; i < value.size(); ++i) {
        RETURN_IF_ERROR(CheckFields(value[i], field.fields, where + "[" + std::to_string(i) + "]"));
      }
      return {};
  }
  return {};
}

// Null is the same as not there, as to the API server.
Status CheckFields(const json& object, std::span<const Field> fields, const std::string& where) {
  if (!object.is_object()) return Wrong(where, object, NameOf(Type::kObject));
  for (const Field& field : fields) {
    const auto value = object.find(field.name);
    if (value == object.end() || value->is_null()) continue;
    RETURN_IF_ERROR(Check(*value, field, Under(where, field.name)));
  }
  return {};
}

}  // namespace

Status CheckPodShape(const json& pod) { return CheckFields(pod, kPod, ""); }

Status CheckRequestShape(const json& request) {
  RETURN_IF_ERROR(CheckFields(request, kRequest, "request"));
  if (kube::StringAt(request, {"operation"}) != "CREATE" || kube::HasAt(request, {"object"})) return {};
  return InvalidArgument("request.object: missing: send what is to be created");
}

Status CheckOwnerShape(const json& owner) { return CheckFields(owner, kOwner, ""); }

}  // namespace headrace::op
