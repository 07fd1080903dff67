#include "operator/admission/server.h"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <vector>

#include "common/base/log.h"
#include "common/net/base64.h"
#include "common/spec/names.h"
#include "common/spec/plan.h"
#include "operator/admission/pod_shape.h"
#include "operator/admission/reinjection.h"
#include "operator/admission/review_shape.h"
#include "operator/admission/run_plans.h"
#include "operator/admission/workload.h"
#include "operator/kube/object.h"

namespace headrace::op {
namespace {

using nlohmann::json;

// Of a review's JSON: pods nest some 15 deep, fields that others manage some 20. A tree of values is copied and printed
// by recursion, and takes some 100 bytes a value: the larger ones are answered one at a time.
constexpr size_t kMostDepth = 100;
constexpr size_t kLargeValues = 20000;

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

// No API server sends such an object.
Verdict Malformed(const Status& why) { return Denied("Malformed", "headrace: " + why.message(), 400); }

// Levenshtein's distance; `limit` where it is that or more.
size_t EditDistance(std::string_view a, std::string_view b, size_t limit) {
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
    if (*std::min_element(row.begin(), row.end()) >= limit) return limit;
  }
  return row[b.size()];
}

class Reviewer {
 public:
  explicit Reviewer(AdmissionDeps deps) : deps_(std::move(deps)), run_plans_(deps_.pods, deps_.config_maps) {}

  HttpResponse Handle(const HttpRequest& request) const {
    const bool of_template = request.path == kInjectTemplatePath;
    if ((request.path != kInjectPath && !of_template) || request.method != "POST") {
      return {404, "text/plain; charset=utf-8",
              std::string("POST ") + kInjectPath + " and " + kInjectTemplatePath + " are all there is here\n"};
    }
    const ReviewShape shape = ShapeOf(request.body);
    if (shape.depth > kMostDepth) {
      return {400, "text/plain; charset=utf-8",
              "the body nests deeper than " + std::to_string(kMostDepth) + ": no review does\n"};
    }
    if (shape.values <= kLargeValues) return Review(request.body, of_template);
    const std::unique_lock alone(large_, std::try_to_lock);
    if (!alone.owns_lock()) {
      return {503, "text/plain; charset=utf-8", "another review as large is being answered: try again\n"};
    }
    HttpResponse answer = Review(request.body, of_template);
    ::malloc_trim(0);  // what it took goes back to the system
    return answer;
  }

 private:
  HttpResponse Review(const std::string& body, bool of_template) const {
    const json review = json::parse(body, nullptr, /*allow_exceptions=*/false);
    const std::string uid = kube::StringAt(review, {"request", "uid"});
    if (uid.empty() || kube::StringAt(review, {"apiVersion"}) != "admission.k8s.io/v1") {
      return {400, "text/plain; charset=utf-8", "the body is no AdmissionReview of admission.k8s.io/v1\n"};
    }
    Verdict verdict;
    int http_status = 200;
    try {
      const json& request = review["request"];
      const Status shape = CheckRequestShape(request);
      verdict = !shape.ok() ? Malformed(shape) : of_template ? ReviewTemplates(request) : ReviewPod(request);
    } catch (const std::exception& error) {
      log::Error("admission review failed", {{"uid", uid}, {"error", error.what()}});
      verdict = Denied("InternalError", std::string("headrace: internal error: ") + error.what(), 500);
      verdict.result = "error";
      http_status = 500;
    }
    if (deps_.on_review) deps_.on_review(verdict.result, verdict.reason);
    return {http_status, "application/json", Envelope(uid, verdict).dump()};
  }

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

  // What a pod or template asks for, found in the caches.
  struct Asked {
    kube::Object input;
    Plan plan;  // by the input's spec as it is now
  };

  // Whether the request is the creation of such an object.
  static bool Creates(const json& request, std::string_view resource) {
    return kube::StringAt(request, {"resource", "resource"}) == resource && !request.contains("subResource") &&
           kube::StringAt(request, {"operation"}) == "CREATE";
  }

  Verdict ReviewPod(const json& request) const {
    if (!Creates(request, "pods")) return Skipped("NotAPodCreation");
    const json& pod = kube::ObjectAt(request, {"object"});
    if (kube::LabelOf(pod, names::kInputLabel).empty()) return Skipped("NotOptedIn");
    if (const Status shape = CheckPodShape(pod); !shape.ok()) return Malformed(shape);
    if (IsInjected(pod) && IsWhole(pod) && IsPlaced(pod)) return Skipped("AlreadyInjected");
    const std::string name_space = kube::StringAt(request, {"namespace"});
    Asked asked;
    if (const auto refusal = Find(pod, name_space, &asked)) return *refusal;

    const Result<World> world = FindWorld(pod, [&](std::string_view kind, const std::string& name) -> kube::Object {
      const kube::Store* store = kind == "Job" ? deps_.jobs : kind == "StatefulSet" ? deps_.stateful_sets : nullptr;
      return store == nullptr ? nullptr : Await(*store, name_space + "/" + name, deps_.owner_wait);
    });
    if (!world.ok()) {
      const bool wait = world.status().code() == Code::kUnavailable;
      return Denied(wait ? "OwnerNotCached" : "NoRank", "headrace: " + world.status().message(), wait ? 503 : 403);
    }
    if (!world->reads_input) return NotATrainer(pod);
    const RunPlans::Run run{name_space, kube::NameOf(*asked.input), world->run_id};
    if (auto pinned = run_plans_.Find(run, pod, *asked.input, asked.plan.hash)) asked.plan = std::move(*pinned);
    const char* what = !IsInjected(pod) ? "Injected" : IsPlaced(pod) ? "Repaired" : "Placed";
    Verdict verdict = Inject(pod, asked, *world, what);
    const bool dry_run = request.value("dryRun", false);
    if (verdict.allowed && !dry_run) run_plans_.Remember(run, pod, asked.plan.hash);
    return verdict;
  }

  Verdict ReviewTemplates(const json& request) const {
    const bool is_set = Creates(request, "jobsets");
    if (!is_set && !Creates(request, "jobs")) return Skipped("NotAJobCreation");
    const json& owner = kube::ObjectAt(request, {"object"});
    if (kube::LabelOf(owner, names::kInjectTemplateLabel) != "true") return Skipped("NotOptedIn");
    if (const Status shape = CheckOwnerShape(owner); !shape.ok()) return Malformed(shape);
    const std::string name_space = kube::StringAt(request, {"namespace"});
    if (is_set) return ReviewJobSet(owner, name_space);
    const json& made = kube::ObjectAt(owner, {"spec", "template"});
    return ReviewTemplate(made, "/spec/template", name_space, [&] { return WorldOfTemplate(owner, made); });
  }

  // Its replicated jobs that read an input, each by itself.
  Verdict ReviewJobSet(const json& set, const std::string& name_space) const {
    Verdict all = Skipped("NotOptedIn");
    const json& jobs = kube::ListAt(set, {"spec", "replicatedJobs"});
    for (size_t i = 0; i < jobs.size(); ++i) {
      const json& made = kube::ObjectAt(jobs[i], {"template", "spec", "template"});
      const std::string at = "/spec/replicatedJobs/" + std::to_string(i) + "/template/spec/template";
      Verdict one = ReviewTemplate(made, at, name_space, [&] { return WorldOfReplicatedJob(jobs[i], made); });
      if (!one.allowed) {
        one.message = "spec.replicatedJobs[" + std::to_string(i) + "]: " + one.message;
        return one;
      }
      if (all.patch.empty()) all.result = one.result, all.reason = one.reason;
      all.patch.insert(all.patch.end(), one.patch.begin(), one.patch.end());
      all.warnings.insert(all.warnings.end(), one.warnings.begin(), one.warnings.end());
    }
    return all;
  }

  // `at`: where the template is in the object, as a JSON Pointer.
  Verdict ReviewTemplate(const json& made, const std::string& at, const std::string& name_space,
                         const std::function<Result<World>()>& find_world) const {
    if (kube::LabelOf(made, names::kInputLabel).empty()) return Skipped("NotOptedIn");
    if (IsInjected(made) && IsWhole(made)) return Skipped("AlreadyInjected");
    Asked asked;
    if (const auto refusal = Find(made, name_space, &asked)) return *refusal;
    const Result<World> world = find_world();
    if (!world.ok()) return Denied("NoRank", "headrace: " + world.status().message());
    if (!world->reads_input) return Skipped("NotATrainer");
    Verdict verdict = Inject(made, asked, *world, "Template");
    for (json& operation : verdict.patch) operation["path"] = at + operation["path"].get<std::string>();
    return verdict;
  }

  // Fills `asked`, or says why not.
  std::optional<Verdict> Find(const json& pod, const std::string& name_space, Asked* asked) const {
    const std::string name = kube::LabelOf(pod, names::kInputLabel);
    asked->input = Await(*deps_.inputs, name_space + "/" + name, deps_.input_wait);
    if (asked->input == nullptr) return Denied("InputNotFound", NoSuchInput(name_space, name));
    const std::string where = "DistributedInput \"" + name + "\" in namespace " + name_space;
    if (!kube::StringAt(*asked->input, {"metadata", "deletionTimestamp"}).empty()) {
      return Denied("InputDeleted", where + " is being deleted: wait, then create it again");
    }
    // The condition Accepted says the same, but may not have been written yet for an input just made or changed.
    Result<InputSpec> spec = ParseInputSpec(kube::ObjectAt(*asked->input, {"spec"}));
    if (!spec.ok()) {
      return Denied("InputNotAccepted",
                    where + " is not Accepted: " + spec.status().message() + ": correct it, then create the pod again");
    }
    asked->plan = CompilePlan(std::move(spec).value(), name_space + "/" + name);
    return std::nullopt;
  }

  // What is not in the cache yet is waited for; not, where many wait already.
  kube::Object Await(const kube::Store& store, const std::string& key, std::chrono::milliseconds timeout) const {
    kube::Object found = store.Get(key);
    if (found != nullptr) return found;
    if (++waiting_ <= deps_.most_waiting) found = store.WaitFor(key, timeout);
    --waiting_;
    return found;
  }

  Verdict Inject(const json& pod, const Asked& asked, const World& world, std::string_view reason) const {
    Result<json> patch = InjectPatch(pod, *asked.input, asked.plan, world, deps_.loader);
    if (!patch.ok()) return Denied("PodConflict", "headrace: " + patch.status().message());
    Verdict verdict;
    verdict.result = "injected";
    verdict.reason = reason;
    verdict.patch = std::move(patch).value();
    verdict.warnings = InjectWarnings(pod, asked.plan.spec);
    return verdict;
  }

  // Says so on the pod, for whoever wonders, and for the policy that refuses pods without their loader.
  static Verdict NotATrainer(const json& pod) {
    Verdict verdict = Skipped("NotATrainer");
    if (!kube::AnnotationOf(pod, names::kNotInjectedAnnotation).empty()) return verdict;
    if (!kube::HasAt(pod, {"metadata", "annotations"})) {
      verdict.patch.push_back({{"op", "add"}, {"path", "/metadata/annotations"}, {"value", json::object()}});
    }
    verdict.patch.push_back({{"op", "add"},
                             {"path", "/metadata/annotations/" + EscapePointer(names::kNotInjectedAnnotation)},
                             {"value", "NotATrainer"}});
    return verdict;
  }

  std::string NoSuchInput(const std::string& name_space, const std::string& name) const {
    std::string message = "no DistributedInput \"" + name + "\" in namespace " + name_space;
    std::string nearest;
    size_t best = std::min<size_t>(name.size() / 3 + 2, 8);  // further off is no misspelling
    for (const std::string& key : deps_.inputs->Keys()) {
      const kube::NamespacedName candidate = kube::SplitKey(key);
      if (candidate.name_space != name_space) continue;
      if (const size_t distance = EditDistance(name, candidate.name, best); distance < best) {
        best = distance;
        nearest = candidate.name;
      }
    }
    if (!nearest.empty()) return message + "; did you mean \"" + nearest + "\"?";
    return message + "; create it, or correct the pod's label " + names::kInputLabel;
  }

  const AdmissionDeps deps_;
  mutable RunPlans run_plans_;
  mutable std::atomic<int> waiting_ = 0;
  mutable std::mutex large_;
};

}  // namespace

HttpServerOptions WebhookServerOptions() {
  HttpServerOptions options;
  options.threads = 16;               // a review may wait for a cache; it uses no processor meanwhile
  options.idle_timeout_ms = 120'000;  // longer than the API server keeps idle connections, so that it closes them
  return options;
}

HttpHandler MakeAdmissionHandler(AdmissionDeps deps) {
  auto reviewer = std::make_shared<const Reviewer>(std::move(deps));
  return [reviewer](const HttpRequest& request) { return reviewer->Handle(request); };
}

}  // namespace headrace::op
