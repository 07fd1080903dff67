#include "operator/admission/server.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <vector>

#include "common/base/log.h"
#include "common/net/base64.h"
#include "common/spec/names.h"
#include "common/spec/object_names.h"
#include "common/spec/plan.h"
#include "operator/admission/workload.h"
#include "operator/kube/object.h"

namespace headrace::op {
namespace {

using nlohmann::json;

// A StatefulSet rolled out anew begins a new run under the same owner.
constexpr char kRevisionLabel[] = "controller-revision-hash";

// What a review comes to. `patch` and `warnings` are used if allowed, `message` if not.
struct Verdict {
  bool allowed = true;
  std::string_view result;
  std::string_view reason;
  int code = 200;
  std::string message;
  json patch = json::array();
  std::vector<std::string> warnings;
};

Verdict Skipped(std::string_view reason) {
  Verdict verdict;
  verdict.result = "skipped";
  verdict.reason = reason;
  return verdict;
}

Verdict Denied(std::string_view reason, std::string message, int code = 403) {
  Verdict verdict;
  verdict.allowed = false;
  verdict.result = "denied";
  verdict.reason = reason;
  verdict.code = code;
  verdict.message = std::move(message);
  return verdict;
}

// Levenshtein's distance.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t k = 0; k < b.size(); ++k) {
      const size_t substituted = diagonal + (a[i] == b[k] ? 0 : 1);
      diagonal = row[k + 1];
      row[k + 1] = std::min({row[k] + 1, row[k + 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

class Reviewer {
 public:
  explicit Reviewer(AdmissionDeps deps) : deps_(std::move(deps)) {}

  HttpResponse Handle(const HttpRequest& request) const {
    if (request.path != kInjectPath || request.method != "POST") {
      return {404, "text/plain; charset=utf-8", std::string("POST ") + kInjectPath + " is all there is here\n"};
    }
    const json review = json::parse(request.body, nullptr, /*allow_exceptions=*/false);
    const std::string uid = kube::StringAt(review, {"request", "uid"});
    if (uid.empty() || kube::StringAt(review, {"apiVersion"}) != "admission.k8s.io/v1") {
      return {400, "text/plain; charset=utf-8", "the body is no AdmissionReview of admission.k8s.io/v1\n"};
    }
    Verdict verdict;
    int http_status = 200;
    try {
      verdict = Review(review["request"]);
    } catch (const std::exception& error) {
      log::Error("admission review failed", {{"uid", uid}, {"error", error.what()}});
      verdict = Denied("InternalError", std::string("headrace: internal error: ") + error.what(), 500);
      verdict.result = "error";
      http_status = 500;
    }
    if (deps_.on_review) deps_.on_review(verdict.result, verdict.reason);
    return {http_status, "application/json", Envelope(uid, verdict).dump()};
  }

 private:
  static json Envelope(const std::string& uid, const Verdict& verdict) {
    json response = {{"uid", uid}, {"allowed", verdict.allowed}};
    if (!verdict.allowed) {
      response["status"] = {{"code", verdict.code}, {"reason", verdict.reason}, {"message", verdict.message}};
    } else if (!verdict.patch.empty()) {
      response["patchType"] = "JSONPatch";
      response["patch"] = EncodeBase64(verdict.patch.dump());
      if (!verdict.warnings.empty()) response["warnings"] = verdict.warnings;
    }
    return {{"apiVersion", "admission.k8s.io/v1"}, {"kind", "AdmissionReview"}, {"response", std::move(response)}};
  }

  Verdict Review(const json& request) const {
    if (kube::StringAt(request, {"resource", "resource"}) != "pods" || request.contains("subResource") ||
        kube::StringAt(request, {"operation"}) != "CREATE") {
      return Skipped("NotAPodCreation");
    }
    const json& pod = request.at("object");
    const std::string input_name = kube::LabelOf(pod, names::kInputLabel);
    if (input_name.empty()) return Skipped("NotOptedIn");
    if (!kube::AnnotationOf(pod, names::kInjectedAnnotation).empty()) return Skipped("AlreadyInjected");

    const std::string name_space = kube::StringAt(request, {"namespace"});
    const kube::Object input = deps_.inputs->WaitFor(name_space + "/" + input_name, deps_.input_wait);
    if (input == nullptr) return Denied("InputNotFound", NoSuchInput(name_space, input_name));
    const std::string where = "DistributedInput \"" + input_name + "\" in namespace " + name_space;
    if (!kube::StringAt(*input, {"metadata", "deletionTimestamp"}).empty()) {
      return Denied("InputDeleted", where + " is being deleted: wait, then create it again");
    }
    // The condition Accepted says the same, but may not have been written yet for an input just made or changed.
    const Result<InputSpec> spec = ParseInputSpec(input->value("spec", json::object()));
    if (!spec.ok()) {
      return Denied("InputNotAccepted",
                    where + " is not Accepted: " + spec.status().message() + ": correct it, then create the pod again");
    }
    Plan plan = CompilePlan(*spec, name_space + "/" + input_name);
    if (std::optional<Plan> pinned = PinnedPlan(pod, name_space, input_name, plan.hash)) plan = std::move(*pinned);

    const Result<World> world = FindWorld(pod, [&](std::string_view kind, const std::string& name) -> kube::Object {
      const kube::Store* store = kind == "Job" ? deps_.jobs : kind == "StatefulSet" ? deps_.stateful_sets : nullptr;
      return store == nullptr ? nullptr : store->WaitFor(name_space + "/" + name, deps_.owner_wait);
    });
    if (!world.ok()) {
      const bool wait = world.status().code() == Code::kUnavailable;
      return Denied(wait ? "OwnerNotCached" : "NoRank", "headrace: " + world.status().message(), wait ? 503 : 403);
    }
    LoaderOptions loader;
    loader.image = deps_.loader_image;
    loader.image_pull_policy = deps_.image_pull_policy;
    Result<json> patch = InjectPatch(pod, *input, plan, *world, loader);
    if (!patch.ok()) return Denied("PodConflict", "headrace: " + patch.status().message());
    Verdict verdict;
    verdict.result = "injected";
    verdict.reason = "Injected";
    verdict.patch = std::move(patch).value();
    verdict.warnings = InjectWarnings(pod, plan.spec);
    return verdict;
  }

  std::string NoSuchInput(const std::string& name_space, const std::string& name) const {
    std::string message = "no DistributedInput \"" + name + "\" in namespace " + name_space;
    std::string nearest;
    size_t best = name.size() / 3 + 2;  // further off is no misspelling
    for (const kube::Object& input : deps_.inputs->List(name_space)) {
      const std::string candidate = kube::NameOf(*input);
      if (const size_t distance = EditDistance(name, candidate); distance < best) {
        best = distance;
        nearest = candidate;
      }
    }
    if (!nearest.empty()) return message + "; did you mean \"" + nearest + "\"?";
    return message + "; create it, or correct the pod's label " + names::kInputLabel;
  }

  // The plan that the pod's siblings are pinned to, where it is not the current one: all pods of one run read alike,
  // though the input may change while the run lives. Pods are looked through only if an older plan still exists.
  std::optional<Plan> PinnedPlan(const json& pod, const std::string& name_space, const std::string& input,
                                 const std::string& current_hash) const {
    const json* owner = kube::ControllerOf(pod);
    if (owner == nullptr || deps_.pods == nullptr || deps_.config_maps == nullptr) return {};
    const std::string owner_uid = kube::StringAt(*owner, {"uid"});
    const std::string current = names::PlanConfigMapName(input, current_hash);
    bool older = false;
    for (const kube::Object& map : deps_.config_maps->List(name_space)) {
      older = older || (kube::LabelOf(*map, names::kInputLabel) == input && kube::NameOf(*map) != current);
    }
    if (!older) return {};
    for (const kube::Object& sibling : deps_.pods->List(name_space)) {
      const json* other = kube::ControllerOf(*sibling);
      const std::string hash = kube::AnnotationOf(*sibling, names::kInjectedAnnotation);
      if (other == nullptr || kube::StringAt(*other, {"uid"}) != owner_uid || hash.empty() || hash == current_hash ||
          kube::LabelOf(*sibling, names::kInputLabel) != input ||
          kube::LabelOf(*sibling, kRevisionLabel) != kube::LabelOf(pod, kRevisionLabel)) {
        continue;
      }
      const kube::Object map = deps_.config_maps->Get(name_space + "/" + names::PlanConfigMapName(input, hash));
      if (map == nullptr) continue;
      Result<Plan> plan =
          ParsePlan(json::parse(kube::StringAt(*map, {"data", names::kPlanFile}), nullptr, /*allow_exceptions=*/false));
      if (plan.ok()) return std::move(plan).value();
    }
    return {};
  }

  const AdmissionDeps deps_;
};

}  // namespace

HttpHandler MakeAdmissionHandler(AdmissionDeps deps) {
  auto reviewer = std::make_shared<const Reviewer>(std::move(deps));
  return [reviewer](const HttpRequest& request) { return reviewer->Handle(request); };
}

}  // namespace headrace::op
