#include "operator/admission/inject.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <vector>

#include "common/spec/components.h"
#include "common/spec/memory.h"
#include "common/spec/names.h"
#include "common/spec/object_names.h"
#include "common/spec/tensor_fields.h"
#include "common/spec/variable.h"
#include "operator/admission/function_container.h"
#include "operator/admission/reinjection.h"
#include "operator/admission/resource_claim.h"
#include "operator/kube/object.h"

namespace headrace::op {
namespace {

using nlohmann::json;

bool HasEntry(const json& list, const char* key, std::string_view value) {
  return std::any_of(list.begin(), list.end(),
                     [&](const json& entry) { return kube::StringAt(entry, {key}) == value; });
}

// Builds the patch; knows which lists exist so far.
class Patch {
 public:
  void Add(const std::string& path, json value) {
    operations_.push_back({{"op", "add"}, {"path", path}, {"value", std::move(value)}});
  }
  // Appends to the list `key` of the object at `path`, which is made first where the pod lacks it.
  void Append(const json& object, const std::string& path, const char* key, json value) {
    Insert(object, path, key, "-", std::move(value));
  }
  void Insert(const json& object, const std::string& path, const char* key, const std::string& position, json value) {
    const std::string list = path + "/" + key;
    if (!kube::HasAt(object, {key}) && made_.insert(list).second) Add(list, json::array());
    Add(list + "/" + position, std::move(value));
  }
  json Take() && { return std::move(operations_); }

 private:
  json operations_ = json::array();
  std::set<std::string> made_;
};

// The indexes of the containers that read batches.
Result<std::vector<size_t>> Trainers(const json& pod) {
  const json& containers = kube::ListAt(pod.at("spec"), {"containers"});
  std::vector<size_t> trainers;
  const std::string wanted = kube::AnnotationOf(pod, names::kContainersAnnotation);
  if (wanted.empty()) {
    for (size_t i = 0; i < containers.size(); ++i) {
      if (!IsEarlierSidecar(kube::StringAt(containers[i], {"name"}))) trainers.push_back(i);
    }
    return trainers;
  }
  size_t begin = 0;
  while (begin <= wanted.size()) {
    const size_t end = std::min(wanted.find(',', begin), wanted.size());
    std::string name = wanted.substr(begin, end - begin);
    name.erase(0, name.find_first_not_of(' '));
    name.erase(name.find_last_not_of(' ') + 1);
    begin = end + 1;
    const auto found = std::find_if(containers.begin(), containers.end(),
                                    [&](const json& container) { return kube::StringAt(container, {"name"}) == name; });
    if (found == containers.end()) {
      std::string known;
      for (const json& container : containers)
        known += (known.empty() ? "" : ", ") + kube::StringAt(container, {"name"});
      return InvalidArgument(std::string("metadata.annotations[") + names::kContainersAnnotation +
                             "]: the pod has no " + "container \"" + name + "\": its containers are " + known);
    }
    const size_t index = static_cast<size_t>(found - containers.begin());
    if (std::find(trainers.begin(), trainers.end(), index) == trainers.end()) trainers.push_back(index);
  }
  return trainers;
}

// A whole number out of a resource quantity; GPUs come in no other form.
int64_t WholeQuantity(const json& quantity) {
  if (quantity.is_number_integer()) return quantity.get<int64_t>();
  if (!quantity.is_string()) return 0;
  try {
    return std::stoll(quantity.get<std::string>());
  } catch (const std::exception&) {
    return 0;
  }
}

Status CheckNames(const json& pod, const std::vector<size_t>& trainers) {
  const json& spec = pod.at("spec");
  const auto taken = [](const std::string& what) {
    return InvalidArgument("the pod already has " + what + ", which Headrace adds itself: rename or remove it");
  };
  for (const char* volume :
       {names::kRunVolume, names::kPlanVolume, names::kDataVolume, names::kCacheVolume, names::kPeersVolume}) {
    if (HasEntry(kube::ListAt(spec, {"volumes"}), "name", volume))
      return taken(std::string("a volume \"") + volume + "\"");
  }
  for (const char* list : {"initContainers", "containers"}) {
    for (const char* name : {names::kLoaderContainer, names::kFunctionContainer}) {
      if (HasEntry(kube::ListAt(spec, {list}), "name", name)) return taken(std::string("a container \"") + name + "\"");
    }
  }
  const json& containers = kube::ListAt(spec, {"containers"});
  for (const size_t i : trainers) {
    const std::string where = " in container \"" + kube::StringAt(containers[i], {"name"}) + "\"";
    if (HasEntry(kube::ListAt(containers[i], {"volumeMounts"}), "mountPath", names::kRunDir)) {
      return taken(std::string("a mount at ") + names::kRunDir + where);
    }
    if (HasEntry(kube::ListAt(containers[i], {"env"}), "name", names::kEnvDir)) {
      return taken(std::string("the variable ") + names::kEnvDir + where);
    }
  }
  return {};
}

// The bytes of one element of the whole pipeline, as the replicas of one worker may hold it; nothing where that is not
// known before the data is read.
std::optional<int64_t> ElementBytes(const InputSpec& spec, const Topology& topology) {
  if (const auto* function = std::get_if<FunctionSource>(&spec.source)) return function->max_element_bytes;
  int64_t records = 1;
  for (const Transformation& step : spec.pipeline) {
    const Batch* batch = std::get_if<Batch>(&step);
    if (batch != nullptr && __builtin_mul_overflow(records, batch->size, &records)) return {};
  }
  int64_t bytes = 0;
  for (const TensorSpec& component : RecordComponents(spec, spec.pipeline.size(), nullptr)) {
    int64_t size = records;
    if (IsVariable(component)) {  // its row splits; the values have a bound of their own
      if (__builtin_mul_overflow(size, static_cast<int64_t>(sizeof(int64_t)), &size)) return {};
    } else if (__builtin_mul_overflow(size, static_cast<int64_t>(DTypeSize(component.dtype)), &size) ||
               __builtin_mul_overflow(size, NumValues(component.shape), &size)) {
      return {};
    }
    if (__builtin_add_overflow(bytes, size, &bytes)) return {};
  }
  const int64_t replicas = topology.replicas_in_sync();
  const uint64_t variable = VariableBytes(spec, records / replicas + 1);
  if (__builtin_add_overflow(bytes, variable * static_cast<uint64_t>(topology.replicas_per_worker), &bytes)) return {};
  return bytes;
}

// What the rings of one worker may hold. A limit, not a reservation: memory is used as the loader fills it.
int64_t RunVolumeBytes(const InputSpec& spec, const Topology& topology, int64_t least) {
  constexpr int64_t kMost = int64_t{1} << 42;
  const std::optional<int64_t> element = ElementBytes(spec, topology);
  if (!element) return least;
  const int64_t slots =
      spec.delivery.prefetch_steps.value_or(DefaultPrefetchSteps(*element / topology.replicas_in_sync())) + 2;
  // One element a step is shared by all replicas, and each replica's part is rounded up: twice covers pages and
  // headers.
  const double bytes = 2.0 * static_cast<double>(*element) * static_cast<double>(slots);
  return std::max(least, static_cast<int64_t>(std::min(bytes, static_cast<double>(kMost))));
}

// Where worker 0's loader listens, as its peers reach it: by the name that its pod has in its subdomain.
Result<std::string> Coordinator(const json& pod, const World& world, const std::string& subdomain) {
  if (!world.coordinator.empty()) {
    const size_t colon = world.coordinator.rfind(':');
    if (colon != std::string::npos && colon > 0 && colon + 1 < world.coordinator.size() &&
        world.coordinator.find_first_not_of("0123456789", colon + 1) == std::string::npos) {
      return world.coordinator;
    }
    return InvalidArgument(std::string("metadata.annotations[") + names::kCoordinatorAnnotation + "]: \"" +
                           world.coordinator + "\" is not \"host:port\", the address of worker 0's loader");
  }
  if (world.first_host.empty()) {
    const json* owner = kube::ControllerOf(pod);
    return InvalidArgument("the run has " + std::to_string(world.num_workers) +
                           " workers, whose loaders meet at worker " + "0's, but " +
                           (owner == nullptr ? "without an owner" : "a " + kube::StringAt(*owner, {"kind"})) +
                           " that names its pods (OWNER-0, OWNER-1, ...) worker 0 has no address that lasts: use an " +
                           "Indexed Job or a StatefulSet with a name, or give the annotation " +
                           names::kCoordinatorAnnotation + ": host:" + std::to_string(names::kPeersPort));
  }
  return world.first_host + "." + subdomain + ":" + std::to_string(names::kPeersPort);
}

json Literal(const char* name, const std::string& value) { return {{"name", name}, {"value", value}}; }

json LoaderEnv(const World& world, int64_t replicas, const std::string& data_dir) {
  const auto label = [](const char* name, const std::string& key) {
    return json{{"name", name}, {"valueFrom", {{"fieldRef", {{"fieldPath", "metadata.labels['" + key + "']"}}}}}};
  };
  json run_id;
  if (!world.run_id_label.empty()) {
    run_id = label(names::kEnvRunId, world.run_id_label);
  } else if (!world.run_id.empty()) {
    run_id = Literal(names::kEnvRunId, world.run_id);
  } else {  // a pod by itself is its own run
    run_id = {{"name", names::kEnvRunId}, {"valueFrom", {{"fieldRef", {{"fieldPath", "metadata.uid"}}}}}};
  }
  json index = world.index_label.empty() ? Literal(names::kEnvWorkerIndex, std::to_string(world.index))
                                         : label(names::kEnvWorkerIndex, world.index_label);
  if (!world.placed) index = Literal(names::kEnvWorkerIndex, kPlaceToCome);
  return json::array({
      Literal(names::kEnvDir, names::kRunDir),
      Literal(names::kEnvPlan, std::string(names::kPlanDir) + "/" + names::kPlanFile),
      std::move(index),
      Literal(names::kEnvNumWorkers, std::to_string(world.num_workers)),
      Literal(names::kEnvReplicasPerWorker, std::to_string(replicas)),
      std::move(run_id),
      Literal(names::kEnvDataDir, data_dir),
      Literal(names::kEnvListen, "0.0.0.0:" + std::to_string(names::kLoaderPort)),
  });
}

// The keys of an object store, from the Secret of spec.source.files.objectStore.credentialsSecret.
void AppendCredentials(const json& input, json* env) {
  const json name = input.value("/spec/source/files/objectStore/credentialsSecret/name"_json_pointer, json());
  if (!name.is_string()) return;
  for (const auto& [key, optional] :
       {std::pair("AWS_ACCESS_KEY_ID", false), std::pair("AWS_SECRET_ACCESS_KEY", false),
        std::pair("AWS_SESSION_TOKEN", true), std::pair("AWS_REGION", true), std::pair("AWS_ENDPOINT_URL", true)}) {
    json reference = {{"name", name}, {"key", key}};
    if (optional) reference["optional"] = true;
    env->push_back({{"name", key}, {"valueFrom", {{"secretKeyRef", std::move(reference)}}}});
  }
}

// Restricted, whatever else is asked for. Who owns the pod's files is who can read them, so the pod's own user is kept.
json LoaderSecurity(const json& pod, const json& input, const LoaderOptions& loader) {
  json security = RestrictedSecurityContext();
  const json of_pod = pod.value("/spec/securityContext/runAsUser"_json_pointer, json());
  if (!of_pod.is_number_integer() || of_pod == 0) security["runAsUser"] = loader.run_as_user;
  const json asked = input.value("/spec/loader/securityContext"_json_pointer, json::object());
  for (const char* key : {"runAsUser", "runAsGroup"}) {
    if (asked.contains(key)) security[key] = asked[key];
  }
  return security;
}

json LoaderContainer(const LoaderOptions& loader, json env, json ports, json mounts, json resources, json security) {
  const auto probe = [](const char* path, int period, int failures) {
    return json{{"httpGet", {{"path", path}, {"port", names::kLoaderPortName}}},
                {"periodSeconds", period},
                {"timeoutSeconds", 5},
                {"failureThreshold", failures}};
  };
  json container = {
      {"name", names::kLoaderContainer},
      {"image", loader.image},
      {"restartPolicy", "Always"},  // a native sidecar: starts before the trainers, ends after them
      {"env", std::move(env)},
      {"ports", std::move(ports)},
      {"startupProbe", probe("/startupz", 1, 600)},
      {"livenessProbe", probe("/healthz", 10, 6)},
      {"resources", std::move(resources)},
      {"securityContext", std::move(security)},
      {"terminationMessagePolicy", "File"},
      {"volumeMounts", std::move(mounts)},
  };
  if (!loader.image_pull_policy.empty()) container["imagePullPolicy"] = loader.image_pull_policy;
  return container;
}

}  // namespace

int64_t ReplicasPerWorker(const json& pod, const InputSpec& spec) {
  if (spec.distribution.replicas_per_worker) return *spec.distribution.replicas_per_worker;
  const Result<std::vector<size_t>> trainers = Trainers(pod);
  if (!trainers.ok()) return 1;
  int64_t gpus = 0;
  for (const size_t i : *trainers) {
    const json limits = pod.at("spec").at("containers")[i].value("/resources/limits"_json_pointer, json::object());
    if (limits.is_object() && limits.contains("nvidia.com/gpu")) gpus += WholeQuantity(limits["nvidia.com/gpu"]);
  }
  return std::max<int64_t>(gpus, 1);
}

std::vector<std::string> InjectWarnings(const json& pod, const InputSpec& spec) {
  const Result<std::vector<size_t>> trainers = Trainers(pod);
  if (!trainers.ok()) return {};
  const Result<std::optional<SharedClaim>> claim = FindSharedClaim(pod, *trainers, spec.delivery);
  return claim.ok() && *claim ? ClaimWarnings(**claim) : std::vector<std::string>();
}

Result<json> InjectPatch(const json& pod, const json& input, const Plan& plan, const World& world,
                         const LoaderOptions& loader) {
  if (IsInjected(pod)) {
    if (IsWhole(pod) && (IsPlaced(pod) || !world.placed)) return json::array();
    Stripped stripped = StripInjection(pod);
    ASSIGN_OR_RETURN(const json again, InjectPatch(stripped.pod, input, plan, world, loader));
    stripped.patch.insert(stripped.patch.end(), again.begin(), again.end());
    return std::move(stripped.patch);
  }
  if (kube::ListAt(pod, {"spec", "containers"}).empty()) {
    return InvalidArgument("spec.containers: the pod has none");
  }
  ASSIGN_OR_RETURN(const std::vector<size_t> trainers, Trainers(pod));
  RETURN_IF_ERROR(CheckNames(pod, trainers));
  RETURN_IF_ERROR(CheckForPods(plan.spec));
  ASSIGN_OR_RETURN(const std::optional<SharedClaim> claim, FindSharedClaim(pod, trainers, plan.spec.delivery));

  const json& spec = pod.at("spec");
  const std::string input_name = kube::NameOf(input);
  const int64_t replicas = ReplicasPerWorker(pod, plan.spec);
  json volume = input.value("/spec/source/files/volume"_json_pointer, json());
  std::string data_dir = names::kDefaultDataDir;
  if (volume.is_object()) {
    data_dir = volume.value("mountPath", data_dir);
    volume.erase("mountPath");
    volume["name"] = names::kDataVolume;
  }

  Patch patch;
  const json run_volume = {{"name", names::kRunVolume},
                           {"emptyDir",
                            {{"medium", "Memory"},
                             {"sizeLimit", std::to_string(RunVolumeBytes(plan.spec, {world.num_workers, 0, replicas},
                                                                         loader.run_volume_bytes))}}}};
  patch.Append(spec, "/spec", "volumes", run_volume);
  patch.Append(
      spec, "/spec", "volumes",
      {{"name", names::kPlanVolume}, {"configMap", {{"name", names::PlanConfigMapName(input_name, plan.hash)}}}});
  json mounts = json::array({{{"name", names::kRunVolume}, {"mountPath", names::kRunDir}},
                             {{"name", names::kPlanVolume}, {"mountPath", names::kPlanDir}, {"readOnly", true}}});
  if (volume.is_object()) {
    patch.Append(spec, "/spec", "volumes", volume);
    mounts.push_back({{"name", names::kDataVolume}, {"mountPath", data_dir}, {"readOnly", true}});
  }
  json cache = input.value("/spec/source/files/objectStore/cache/volume"_json_pointer, json());
  if (cache.is_object()) {
    cache["name"] = names::kCacheVolume;
    patch.Append(spec, "/spec", "volumes", cache);
    mounts.push_back({{"name", names::kCacheVolume}, {"mountPath", names::kCacheDir}});
  }

  // Peers find each other by DNS through the input's headless Service, unless the user has one of their own.
  std::string subdomain = kube::StringAt(spec, {"subdomain"});
  if (subdomain.empty()) subdomain = world.subdomain;
  if (subdomain.empty() && world.placed) {
    subdomain = names::ServiceName(input_name);
    patch.Add("/spec/subdomain", subdomain);
  }
  if (!world.host.empty() && !kube::HasAt(spec, {"hostname"})) patch.Add("/spec/hostname", world.host);
  json env = LoaderEnv(world, replicas, data_dir);
  AppendCredentials(input, &env);
  json ports = json::array({{{"name", names::kLoaderPortName}, {"containerPort", names::kLoaderPort}}});
  if (AgreesOnEnds(plan, {world.num_workers, 0, replicas})) {
    if (world.placed) {
      ASSIGN_OR_RETURN(const std::string coordinator, Coordinator(pod, world, subdomain));
      env.push_back(Literal(names::kEnvCoordinator, coordinator));
    }
    env.push_back(Literal(names::kEnvPeerTlsDir, names::kPeersDir));
    ports.push_back({{"name", names::kPeersPortName}, {"containerPort", names::kPeersPort}});
    json items = json::array();  // not the authority's key
    for (const char* file : {names::kPeerAuthorityFile, names::kPeerCertificateFile, names::kPeerKeyFile}) {
      items.push_back({{"key", file}, {"path", file}});
    }
    patch.Append(spec, "/spec", "volumes",
                 {{"name", names::kPeersVolume},
                  {"secret", {{"secretName", names::PeersSecretName(input_name)}, {"items", std::move(items)}}}});
    mounts.push_back({{"name", names::kPeersVolume}, {"mountPath", names::kPeersDir}, {"readOnly", true}});
  }

  ASSIGN_OR_RETURN(json resources, LoaderResources(input, plan, {world.num_workers, 0, replicas}, loader.resources));
  const std::string position = std::to_string(LoaderPosition(kube::ListAt(spec, {"initContainers"})));
  json loader_container = LoaderContainer(loader, std::move(env), std::move(ports), std::move(mounts),
                                          std::move(resources), LoaderSecurity(pod, input, loader));
  if (claim) AddClaim(*claim, &loader_container);
  patch.Insert(spec, "/spec", "initContainers", position, std::move(loader_container));
  if (const auto* function = std::get_if<FunctionSource>(&plan.spec.source)) {
    patch.Insert(spec, "/spec", "initContainers", position, FunctionContainer(*function));  // before the loader
  }

  for (const size_t i : trainers) {
    const json& container = spec.at("containers")[i];
    const std::string path = "/spec/containers/" + std::to_string(i);
    patch.Append(container, path, "volumeMounts", {{"name", names::kRunVolume}, {"mountPath", names::kRunDir}});
    patch.Append(container, path, "env", {{"name", names::kEnvDir}, {"value", names::kRunDir}});
    if (claim && !NamesClaim(container, *claim)) {
      if (!kube::HasAt(container, {"resources"})) patch.Add(path + "/resources", json::object());
      patch.Append(kube::ObjectAt(container, {"resources"}), path + "/resources", "claims", ClaimEntry(*claim));
    }
  }

  if (!kube::HasAt(pod, {"metadata", "annotations"})) {
    patch.Add("/metadata/annotations", json::object());
  }
  patch.Add("/metadata/annotations/" + EscapePointer(names::kInjectedAnnotation), plan.hash);
  if (!world.owner.empty()) {
    patch.Add("/metadata/annotations/" + EscapePointer(names::kRunOwnerAnnotation), world.owner);
  }
  return std::move(patch).Take();
}

}  // namespace headrace::op
