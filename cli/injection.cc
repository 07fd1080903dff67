#include "cli/injection.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "cli/input_file.h"
#include "common/spec/names.h"
#include "operator/admission/inject.h"
#include "operator/admission/pod_shape.h"
#include "operator/admission/workload.h"

namespace headrace::cli {
namespace {

using nlohmann::json;
using namespace nlohmann::literals;  // NOLINT: the literal "..."_json_pointer

// Where the pod, or the template of pods, is in an object.
std::optional<json::json_pointer> PodOf(const json& object) {
  if (object.value("kind", "") == "Pod") return ""_json_pointer;
  if (object.contains("/spec/template/spec"_json_pointer)) return "/spec/template"_json_pointer;
  return std::nullopt;
}

std::string LabelOf(const json& pod) {
  const json labels = pod.value("/metadata/labels"_json_pointer, json::object());
  return labels.is_object() ? labels.value(names::kInputLabel, "") : "";
}

Result<LocalInput> FindInput(const std::string& name, const std::vector<std::string>& files) {
  std::string tried;
  for (const std::string& file : files) {
    Result<LocalInput> input = LoadInput(file, name);
    if (input.ok() || input.status().code() != Code::kNotFound) return input;
    tried += (tried.empty() ? "" : ", ") + file;
  }
  return NotFound(std::string("label ") + names::kInputLabel + ": there is no " + names::kKind + " \"" + name +
                  "\" in " + tried + "; give the file that holds it with --inputs");
}

Result<json> InjectOne(const json& object, const json::json_pointer& at, const LocalInput& input,
                       const std::string& image) {
  const json& pod = object.at(at);
  ASSIGN_OR_RETURN(const op::World world, at.empty() ? op::FindWorld(pod, [](auto, auto&) { return nullptr; })
                                                     : op::WorldOfTemplate(object, pod));
  RETURN_IF_ERROR(CheckTopology(input.plan, {world.num_workers, 0, op::ReplicasPerWorker(pod, input.plan.spec)}));
  op::LoaderOptions loader;
  loader.image = image;
  ASSIGN_OR_RETURN(const json patch, op::InjectPatch(pod, *input.object, input.plan, world, loader));
  json injected = object;
  injected[at] = pod.patch(patch);
  return injected;
}

Result<json> InjectDocument(const YamlDocument& document, const InjectionOptions& options, Injection* injection) {
  const json& object = *document.value;
  const std::optional<json::json_pointer> at = object.is_object() ? PodOf(object) : std::nullopt;
  if (at) RETURN_IF_ERROR(at->empty() ? op::CheckPodShape(object) : op::CheckOwnerShape(object));
  const std::string name = at ? LabelOf(object.at(*at)) : "";
  if (name.empty()) return object;
  ASSIGN_OR_RETURN(const LocalInput input, FindInput(name, options.input_files));
  ASSIGN_OR_RETURN(json injected, InjectOne(object, *at, input, options.loader_image));
  const json metadata = object.value("metadata", json::object());
  injection->notes.push_back(object.value("kind", "") + "/" +
                             metadata.value("name", metadata.value("generateName", "")) +
                             (injected == object ? ": had its loader already"
                                                 : ": loader added for input " + name + ", plan " + input.plan.hash));
  if (injected != object) {
    for (const std::string& warning : op::InjectWarnings(object.at(*at), input.plan.spec)) {
      injection->notes.push_back("warning: " + warning);
    }
  }
  return injected;
}

}  // namespace

Result<Injection> Inject(const std::vector<YamlDocument>& objects, const InjectionOptions& options) {
  Injection injection;
  for (const YamlDocument& document : objects) {
    Result<json> injected = Internal("");
    try {
      injected = InjectDocument(document, options, &injection);
    } catch (const json::exception& e) {  // a field of the wrong type
      injected = InvalidArgument(e.what());
    }
    RETURN_IF_ERROR(injected.status(), document.Where(""));
    injection.yaml += (injection.yaml.empty() ? "" : "---\n") + PrintYaml(*injected);
  }
  if (injection.notes.empty()) {
    return NotFound(std::string("no pod or pod template has the label ") + names::kInputLabel +
                    ", which names the input that it reads");
  }
  return injection;
}

}  // namespace headrace::cli
