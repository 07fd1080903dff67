#include "operator/watches.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/spec/names.h"
#include "operator/kube/object.h"
#include "operator/pod/injected.h"
#include "operator/pod/input_key.h"

namespace headrace::op {
namespace {

using kube::Object;
using nlohmann::json;

// Erases the members of `object` that are not in `keep`.
void Keep(json& object, std::initializer_list<std::string_view> keep) {
  if (!object.is_object()) return;
  for (auto it = object.begin(); it != object.end();) {
    const bool kept = std::find(keep.begin(), keep.end(), it.key()) != keep.end();
    it = kept ? std::next(it) : object.erase(it);
  }
}

json* Find(json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto it = object.find(key);
  return it == object.end() ? nullptr : &*it;
}

// What nobody reads of it, kubectl's copy of the whole object among it.
void SlimMetadata(json& object) {
  json* meta = Find(object, "metadata");
  if (!meta) return;
  Keep(*meta, {"name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
               "labels", "annotations", "ownerReferences"});
  json* annotations = Find(*meta, "annotations");
  if (!annotations || !annotations->is_object()) return;
  for (auto it = annotations->begin(); it != annotations->end();)
    it = it.key().starts_with(names::kGroup) ? std::next(it) : annotations->erase(it);
}

}  // namespace

void SlimWorkload(json& workload) {
  SlimMetadata(workload);
  Keep(workload, {"apiVersion", "kind", "metadata", "spec", "status"});
  if (json* spec = Find(workload, "spec"); spec != nullptr && spec->is_object()) {
    Keep(*spec, {"completions", "replicas", "ordinals", "template"});
    json* made = Find(*spec, "template");
    const bool injected = made != nullptr && !kube::AnnotationOf(*made, names::kInjectedAnnotation).empty();
    if (injected) {
      SlimMetadata(*made);
      Keep(*made, {"metadata"});
    } else {
      spec->erase("template");
    }
  }
  if (json* status = Find(workload, "status")) {
    Keep(*status, {"conditions"});
    if (json* conditions = Find(*status, "conditions"); conditions != nullptr && conditions->is_array()) {
      for (json& condition : *conditions) Keep(condition, {"type", "status"});
    }
  }
}

void SlimService(json& service) {
  SlimMetadata(service);
  Keep(service, {"apiVersion", "kind", "metadata", "spec"});
  json* spec = Find(service, "spec");
  if (spec == nullptr) return;
  Keep(*spec, {"clusterIP", "publishNotReadyAddresses", "selector", "ports"});
  json* ports = Find(*spec, "ports");
  if (ports == nullptr || !ports->is_array()) return;
  for (json& port : *ports) Keep(port, {"name", "port", "protocol"});
}

Watches::Watches(kube::HttpTransport* transport, kube::Client* client, Options options) {
  const auto add = [&](const kube::Resource& resource, const std::string& selector, std::function<void(json&)> slim,
                       kube::Store::Index index, kube::Store::Index input_of) {
    kube::InformerOptions informer;
    informer.resource = resource;
    informer.label_selector = selector;
    informer.slim = std::move(slim);
    informer.index = std::move(index);
    if (options.on_call) informer.on_call = options.on_call(resource.plural);
    plurals_.push_back(resource.plural);
    informers_.push_back(std::make_unique<kube::Informer>(transport, client, std::move(informer)));
    if (!input_of) return;
    const auto tell = [input_of, changed = options.on_change](const Object& object) {
      if (!object) return;
      if (const std::string key = input_of(*object); !key.empty()) changed(key);
    };
    // Before and now: the label may have moved from one input to another.
    informers_.back()->AddHandler({.on_put =
                                       [tell](const Object& before, const Object& now) {
                                         tell(before);
                                         tell(now);
                                       },
                                   .on_delete = tell});
  };
  add(kube::kInputs, "", SlimMetadata, nullptr, kube::KeyOf);
  add(kube::kPods, names::kInputLabel, SlimPod, InputKeyOf, InputKeyOf);
  add(kube::kJobs, "", SlimWorkload, TemplateInputKeyOf, nullptr);
  add(kube::kStatefulSets, "", SlimWorkload, nullptr, nullptr);
  add(kube::kConfigMaps, names::kInputLabel, SlimMetadata, InputKeyOf, InputKeyOf);
  add(kube::kServices, names::kInputLabel, SlimService, nullptr, InputKeyOf);
  for (const auto& informer : informers_) informer->Start();
}

std::vector<std::pair<std::string, const kube::Store*>> Watches::stores() const {
  std::vector<std::pair<std::string, const kube::Store*>> stores;
  for (size_t i = 0; i < informers_.size(); ++i) stores.emplace_back(plurals_[i], &informers_[i]->store());
  return stores;
}

std::vector<ConditionCount> CountConditions(const kube::Store& inputs) {
  std::vector<ConditionCount> counts;
  for (const char* condition : {"Accepted", "Ready", "Degraded"}) {
    for (const char* status : {"True", "False", "Unknown"}) counts.push_back({condition, status, 0});
  }
  for (const std::string& key : inputs.Keys()) {
    const Object input = inputs.Get(key);
    if (input == nullptr) continue;  // deleted since
    const json& conditions = kube::ListAt(*input, {"status", "conditions"});
    for (size_t at = 0; at < counts.size(); at += 3) {
      size_t status = 2;
      for (const json& condition : conditions) {
        if (kube::StringAt(condition, {"type"}) != counts[at].condition) continue;
        const std::string is = kube::StringAt(condition, {"status"});
        status = is == "True" ? 0 : is == "False" ? 1 : 2;
      }
      ++counts[at + status].inputs;
    }
  }
  return counts;
}

bool Watches::synced() const {
  return std::all_of(informers_.begin(), informers_.end(), [](const auto& informer) { return informer->synced(); });
}

}  // namespace headrace::op
