#include "operator/watches.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "common/spec/names.h"
#include "operator/kube/object.h"
#include "operator/pod/injected.h"
#include "operator/pod/input_key.h"

namespace headrace::op {
namespace {

using kube::Object;
using nlohmann::json;

constexpr std::array<const char*, 3> kStatuses = {"True", "False", "Unknown"};  // of a condition

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

// The JSON without the spaces between its parts.
std::string WithoutSpaces(std::string_view text) {
  std::string dense;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (!in_string && (c == ' ' || c == '\n')) continue;
    dense += c;
    if (c == '\\' && i + 1 < text.size()) dense += text[++i];  // it may be a quote
    if (c == '"') in_string = !in_string;
  }
  return dense;
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

void SlimPlan(json& config_map) {
  SlimMetadata(config_map);
  json* data = Find(config_map, "data");
  json* plan = data == nullptr ? nullptr : Find(*data, names::kPlanFile);
  if (plan != nullptr && plan->is_string()) *plan = WithoutSpaces(plan->get_ref<const std::string&>());
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

ConditionCounts::ConditionCounts() {
  for (const char* condition : {"Accepted", "Ready", "Degraded"}) {
    for (const char* status : kStatuses) counts_.push_back({condition, status, 0});
  }
}

void ConditionCounts::OnChange(const json* before, const json* now) {
  const std::lock_guard lock(mutex_);
  if (before != nullptr) Add(*before, -1);
  if (now != nullptr) Add(*now, +1);
}

void ConditionCounts::Add(const json& input, int64_t one) {
  for (size_t at = 0; at < counts_.size(); at += kStatuses.size()) {
    std::string is = kStatuses.back();
    for (const json& condition : kube::ListAt(input, {"status", "conditions"})) {
      if (kube::StringAt(condition, {"type"}) == counts_[at].condition) is = kube::StringAt(condition, {"status"});
    }
    const size_t status = std::find(kStatuses.begin(), kStatuses.end() - 1, is) - kStatuses.begin();
    counts_[at + status].inputs += one;
  }
}

std::vector<ConditionCounts::Count> ConditionCounts::Get() const {
  const std::lock_guard lock(mutex_);
  return counts_;
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
  informers_.back()->AddHandler(
      {.on_put = [this](const Object& before, const Object& now) { conditions_.OnChange(before.get(), now.get()); },
       .on_delete = [this](const Object& removed) { conditions_.OnChange(removed.get(), nullptr); }});
  add(kube::kPods, names::kInputLabel, SlimPod, InputKeyOf, InputKeyOf);
  add(kube::kJobs, "", SlimWorkload, TemplateInputKeyOf, TemplateInputKeyOf);
  add(kube::kStatefulSets, "", SlimWorkload, nullptr, nullptr);
  add(kube::kConfigMaps, names::kInputLabel, SlimPlan, InputKeyOf, InputKeyOf);
  add(kube::kServices, names::kInputLabel, SlimService, nullptr, InputKeyOf);
  for (const auto& informer : informers_) informer->Start();
}

std::vector<std::pair<std::string, const kube::Store*>> Watches::stores() const {
  std::vector<std::pair<std::string, const kube::Store*>> stores;
  for (size_t i = 0; i < informers_.size(); ++i) stores.emplace_back(plurals_[i], &informers_[i]->store());
  return stores;
}

bool Watches::synced() const {
  return std::all_of(informers_.begin(), informers_.end(), [](const auto& informer) { return informer->synced(); });
}

}  // namespace headrace::op
