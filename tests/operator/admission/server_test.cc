// What text cases cannot show: malformed requests, operations other than creation, templates of Jobs, bugs, and waiting
// for the caches.
#include "operator/admission/server.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "common/net/base64.h"
#include "common/spec/plan.h"
#include "operator/pod/input_key.h"

namespace headrace::op {
namespace {

using nlohmann::json;

json ReviewOf(const json& request) {
  return {{"apiVersion", "admission.k8s.io/v1"}, {"kind", "AdmissionReview"}, {"request", request}};
}

json CreationOf(const json& pod) {
  return {{"uid", "u1"},
          {"operation", "CREATE"},
          {"namespace", "ml"},
          {"resource", {{"resource", "pods"}}},
          {"object", pod}};
}

json OptedIn() {
  return {{"metadata", {{"name", "p"}, {"labels", {{"headrace.dev/input", "numbers"}}}}},
          {"spec", {{"containers", json::array({{{"name", "trainer"}}})}}}};
}

kube::Object NumbersInput() {
  return std::make_shared<const json>(json{{"metadata", {{"name", "numbers"}, {"namespace", "ml"}, {"uid", "i1"}}},
                                           {"spec", {{"source", {{"range", {{"stop", 10}}}}}}}});
}

json JobCreation() {
  return {{"uid", "u1"},
          {"operation", "CREATE"},
          {"namespace", "ml"},
          {"resource", {{"group", "batch"}, {"resource", "jobs"}}},
          {"object",
           {{"apiVersion", "batch/v1"},
            {"kind", "Job"},
            {"metadata", {{"name", "train"}, {"labels", {{"headrace.dev/inject-template", "true"}}}}},
            {"spec",
             {{"completions", 2},
              {"completionMode", "Indexed"},
              {"template",
               {{"metadata", {{"labels", {{"headrace.dev/input", "numbers"}}}}},
                {"spec", {{"containers", json::array({{{"name", "trainer"}}})}}}}}}}}}};
}

json Answer(const HttpHandler& handler, const char* path, const json& request) {
  return json::parse(handler({"POST", path, "", ReviewOf(request).dump()}).body).at("response");
}

json Patched(const json& object, const json& response) {
  return object.patch(json::parse(DecodeBase64(response.at("patch").get<std::string>()).value()));
}

class ServerTest : public ::testing::Test {
 protected:
  HttpHandler Handler() {
    AdmissionDeps deps;
    deps.inputs = &inputs_;
    deps.jobs = &jobs_;
    deps.stateful_sets = &stateful_sets_;
    deps.pods = &pods_;
    deps.config_maps = &config_maps_;
    deps.loader.image = "loader";
    deps.input_wait = deps.owner_wait = wait_;
    deps.most_waiting = most_waiting_;
    deps.on_review = [this](std::string_view result, std::string_view) { counted_ = result; };
    return MakeAdmissionHandler(deps);
  }
  kube::Store inputs_, jobs_, stateful_sets_, pods_{InputKeyOf}, config_maps_{InputKeyOf};
  std::chrono::milliseconds wait_{0};
  int most_waiting_ = 8;
  std::string counted_;
};

TEST_F(ServerTest, RefusesWhatIsNoReview) {
  const HttpHandler handler = Handler();
  EXPECT_EQ(handler({"GET", "/inject-pod", "", ""}).status, 404);
  EXPECT_EQ(handler({"POST", "/", "", "{}"}).status, 404);
  EXPECT_EQ(handler({"POST", "/inject-pod", "", ""}).status, 400);
  EXPECT_EQ(handler({"POST", "/inject-pod", "", "{\"request\":"}).status, 400);
  EXPECT_EQ(handler({"POST", "/inject-pod", "", "[1,2]"}).status, 400);
  EXPECT_EQ(handler({"POST", "/inject-pod", "", json{{"apiVersion", "admission.k8s.io/v1"}}.dump()}).status, 400);
  json old = ReviewOf(CreationOf(OptedIn()));
  old["apiVersion"] = "admission.k8s.io/v1beta1";
  EXPECT_EQ(handler({"POST", "/inject-pod", "", old.dump()}).status, 400);
}

TEST_F(ServerTest, LetsOtherOperationsThrough) {
  json update = CreationOf(OptedIn());
  update["operation"] = "UPDATE";
  json other = CreationOf(OptedIn());
  other["resource"]["resource"] = "deployments";
  for (const json& request : {update, other}) {
    const json answer = json::parse(Handler()({"POST", "/inject-pod", "", ReviewOf(request).dump()}).body);
    EXPECT_EQ(answer["response"]["allowed"], true);
    EXPECT_FALSE(answer["response"].contains("patch"));
    EXPECT_EQ(counted_, "skipped");
  }
}

// The field, its value's type, and what to write instead.
TEST_F(ServerTest, NamesWhatHasAnotherTypeThanItShould) {
  inputs_.Put(NumbersInput());
  const HttpHandler handler = Handler();
  const std::pair<const char*, std::pair<json, std::string>> odd_in_requests[] = {
      {"/object", {nullptr, "request.object: missing: send what is to be created"}},
      {"/object", {json::array(), "request.object: [] is a list: write an object"}},
      {"/dryRun", {"no", "request.dryRun: \"no\" is a text: write true or false"}},
      {"/namespace", {5, "request.namespace: 5 is a number: write a text"}},
      {"/object/metadata/labels/x", {5, "metadata.labels[x]: 5 is a number: write a text"}},
      {"/object/metadata/annotations", {json::array(), "metadata.annotations: [] is a list: write an object of texts"}},
      {"/object/metadata/ownerReferences", {{1}, "metadata.ownerReferences[0]: 1 is a number: write an object"}},
      {"/object/spec", {json::array(), "spec: [] is a list: write an object"}},
      {"/object/spec/containers", {json::object(), "spec.containers: {} is an object: write a list of objects"}},
      {"/object/spec/containers/0", {"c", "spec.containers[0]: \"c\" is a text: write an object"}},
      {"/object/spec/containers/0/env",
       {{{"a", 1}}, "spec.containers[0].env: the value is an object: write a list of objects"}},
      {"/object/spec/initContainers",
       {{{{"volumeMounts", true}}}, "spec.initContainers[0].volumeMounts: true is a boolean: write a list of objects"}},
      {"/object/spec/securityContext",
       {{{"runAsUser", "me"}}, "spec.securityContext.runAsUser: \"me\" is a text: write a whole number"}},
  };
  for (const auto& [path, expected] : odd_in_requests) {
    json request = CreationOf(OptedIn());
    request[json::json_pointer(path)] = expected.first;
    const HttpResponse response = handler({"POST", "/inject-pod", "", ReviewOf(request).dump()});
    EXPECT_EQ(response.status, 200);
    const json answer = json::parse(response.body)["response"];
    EXPECT_EQ(answer["allowed"], false) << path;
    EXPECT_EQ(answer["status"],
              json({{"code", 400}, {"reason", "Malformed"}, {"message", "headrace: " + expected.second}}));
    EXPECT_EQ(counted_, "denied");
  }
}

TEST_F(ServerTest, NamesWhatHasAnotherTypeInAJob) {
  inputs_.Put(NumbersInput());
  json request = JobCreation();
  request["object"]["spec"]["completions"] = "2";
  const json answer = Answer(Handler(), "/inject-template", request);
  EXPECT_EQ(answer["status"]["message"], "headrace: spec.completions: \"2\" is a text: write a whole number");
}

// Which some programs write for what is not there.
TEST_F(ServerTest, NullIsTheSameAsNothing) {
  inputs_.Put(NumbersInput());
  json request = CreationOf(OptedIn());
  json& pod = request["object"];
  pod["metadata"]["annotations"] = pod["spec"]["volumes"] = pod["spec"]["initContainers"] = nullptr;
  pod["spec"]["containers"][0]["env"] = pod["spec"]["containers"][0]["volumeMounts"] = nullptr;
  const json patched = Patched(pod, Answer(Handler(), "/inject-pod", request));
  const json expected = Patched(OptedIn(), Answer(Handler(), "/inject-pod", CreationOf(OptedIn())));
  EXPECT_EQ(patched, expected);
}

TEST_F(ServerTest, AnExceptionIsA500WithTheUid) {
  inputs_.Put(NumbersInput());
  json odd = *NumbersInput();  // as no API server with our schema has one
  odd["status"] = json::array();
  inputs_.Put(std::make_shared<const json>(odd));
  json of_a_run = CreationOf(OptedIn());
  of_a_run["object"]["metadata"]["annotations"]["headrace.dev/run"] = "r";
  const HttpResponse response = Handler()({"POST", "/inject-pod", "", ReviewOf(of_a_run).dump()});
  EXPECT_EQ(response.status, 500);
  const json answer = json::parse(response.body);
  EXPECT_EQ(answer["response"]["uid"], "u1");
  EXPECT_EQ(answer["response"]["allowed"], false);
  EXPECT_EQ(counted_, "error");
}

TEST_F(ServerTest, WaitsForAnInputMadeAMomentAgo) {
  wait_ = std::chrono::seconds(20);
  const HttpHandler handler = Handler();
  std::thread informer([&] { inputs_.Put(NumbersInput()); });
  const json answer = json::parse(handler({"POST", "/inject-pod", "", ReviewOf(CreationOf(OptedIn())).dump()}).body);
  informer.join();
  EXPECT_EQ(answer["response"]["allowed"], true) << answer;
  EXPECT_EQ(answer["response"]["patchType"], "JSONPatch");
}

TEST_F(ServerTest, WhereManyWaitTheNextIsAnsweredAtOnce) {
  wait_ = std::chrono::hours(1);
  most_waiting_ = 0;
  const json answer =
      json::parse(Handler()({"POST", "/inject-pod", "", ReviewOf(CreationOf(OptedIn())).dump()}).body).at("response");
  EXPECT_EQ(answer["allowed"], false);
  EXPECT_EQ(answer["status"]["reason"], "InputNotFound");
}

// Copying such a tree, or only letting go of it, would take more stack than a thread has.
TEST_F(ServerTest, RefusesWhatNestsDeeperThanAnyReview) {
  constexpr size_t kDepth = 500'000;
  json deep = JobCreation();
  deep["object"]["spec"]["template"]["x"] = "HERE";
  std::string body = ReviewOf(deep).dump();
  body.replace(body.find("\"HERE\""), 6, std::string(kDepth, '[') + std::string(kDepth, ']'));
  const HttpResponse answer = Handler()({"POST", "/inject-template", "", body});
  EXPECT_EQ(answer.status, 400);
  EXPECT_NE(answer.body.find("nests deeper"), std::string::npos);
}

TEST_F(ServerTest, AnswersALargeReview) {
  inputs_.Put(NumbersInput());
  json large = CreationOf(OptedIn());
  for (int i = 0; i < 30000; ++i) large["object"]["metadata"]["finalizers"].push_back("x");
  EXPECT_EQ(Handler()({"POST", "/inject-pod", "", ReviewOf(large).dump()}).status, 200);
}

TEST_F(ServerTest, AJobThatAsksGetsTheLoaderInItsTemplateSoThatQueuesCountIt) {
  inputs_.Put(NumbersInput());
  const HttpHandler handler = Handler();
  const json response = Answer(handler, "/inject-template", JobCreation());
  ASSERT_EQ(response["allowed"], true) << response;
  const json job = Patched(JobCreation()["object"], response);
  const json& made = job["spec"]["template"];
  const json& loader = made["spec"]["initContainers"][0];
  EXPECT_EQ(loader["name"], "headrace-loader");
  EXPECT_TRUE(loader["resources"]["requests"].contains("memory"));
  EXPECT_FALSE(made["metadata"]["annotations"]["headrace.dev/injected-plan"].get<std::string>().empty());
  EXPECT_EQ(job["metadata"], JobCreation()["object"]["metadata"]) << "the Job itself stays as it is";

  // Its pods come injected, and again changes nothing.
  json pod = made;
  pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] = "1";
  EXPECT_FALSE(Answer(handler, "/inject-pod", CreationOf(pod)).contains("patch"));
  json again = JobCreation();
  again["object"] = job;
  EXPECT_FALSE(Answer(handler, "/inject-template", again).contains("patch"));
}

TEST_F(ServerTest, AJobThatDoesNotAskIsLeftToItsPods) {
  inputs_.Put(NumbersInput());
  json request = JobCreation();
  request["object"]["metadata"].erase("labels");
  EXPECT_FALSE(Answer(Handler(), "/inject-template", request).contains("patch"));
  request = JobCreation();
  request["object"]["spec"]["template"].erase("metadata");
  EXPECT_FALSE(Answer(Handler(), "/inject-template", request).contains("patch"));
  EXPECT_FALSE(Answer(Handler(), "/inject-template", CreationOf(OptedIn())).contains("patch"));
}

TEST_F(ServerTest, ATemplateIsRefusedAsItsPodsWouldBe) {
  const json missing = Answer(Handler(), "/inject-template", JobCreation());
  EXPECT_EQ(missing["allowed"], false);
  EXPECT_EQ(missing["status"]["reason"], "InputNotFound");
  inputs_.Put(NumbersInput());
  json request = JobCreation();
  request["object"]["spec"].erase("completionMode");
  const json no_rank = Answer(Handler(), "/inject-template", request);
  EXPECT_EQ(no_rank["allowed"], false);
  EXPECT_EQ(no_rank["status"]["reason"], "NoRank");
}

json JobSetCreation() {
  const json made = JobCreation()["object"]["spec"]["template"];
  json driver = made;
  driver["metadata"].erase("labels");
  return {
      {"uid", "u1"},
      {"operation", "CREATE"},
      {"namespace", "ml"},
      {"resource", {{"group", "jobset.x-k8s.io"}, {"resource", "jobsets"}}},
      {"object",
       {{"apiVersion", "jobset.x-k8s.io/v1alpha2"},
        {"kind", "JobSet"},
        {"metadata", {{"name", "set"}, {"labels", {{"headrace.dev/inject-template", "true"}}}}},
        {"spec",
         {{"replicatedJobs",
           json::array({{{"name", "driver"}, {"template", {{"spec", {{"template", driver}}}}}},
                        {{"name", "workers"},
                         {"replicas", 2},
                         {"template",
                          {{"spec", {{"completions", 4}, {"completionMode", "Indexed"}, {"template", made}}}}}}})}}}}}};
}

// As the JobSet's controller, and then the Job's, make one of the second Job's pods.
json PodOfSet(const json& made) {
  json pod = made;
  pod["metadata"]["labels"].update({{"batch.kubernetes.io/job-completion-index", "3"},
                                    {"jobset.sigs.k8s.io/jobset-name", "set"},
                                    {"jobset.sigs.k8s.io/replicatedjob-name", "workers"},
                                    {"jobset.sigs.k8s.io/replicatedjob-replicas", "2"},
                                    {"jobset.sigs.k8s.io/job-index", "1"},
                                    {"jobset.sigs.k8s.io/restart-attempt", "0"}});
  pod["metadata"]["ownerReferences"] = json::array(
      {{{"apiVersion", "batch/v1"}, {"kind", "Job"}, {"name", "set-workers-1"}, {"uid", "j1"}, {"controller", true}}});
  pod["spec"]["hostname"] = "set-workers-1-3";
  pod["spec"]["subdomain"] = "set";
  return pod;
}

TEST_F(ServerTest, AJobSetThatAsksGetsTheLoaderAndItsPodsTheirPlaces) {
  inputs_.Put(NumbersInput());
  jobs_.Put(std::make_shared<const json>(
      json{{"metadata",
            {{"name", "set-workers-1"},
             {"namespace", "ml"},
             {"uid", "j1"},
             {"ownerReferences", {{{"kind", "JobSet"}, {"name", "set"}, {"uid", "s1"}, {"controller", true}}}}}},
           {"spec", {{"completions", 4}}}}));
  const HttpHandler handler = Handler();
  const json response = Answer(handler, "/inject-template", JobSetCreation());
  ASSERT_EQ(response["allowed"], true) << response;
  json request = JobSetCreation();
  const json set = Patched(request["object"], response);
  EXPECT_EQ(set["spec"]["replicatedJobs"][0], request["object"]["spec"]["replicatedJobs"][0]) << "it reads no input";
  const json& made = set["spec"]["replicatedJobs"][1]["template"]["spec"]["template"];
  const auto env_of = [](const json& pod) {
    json env;
    for (const json& variable : pod["spec"]["initContainers"][0]["env"]) {
      env[variable["name"].get<std::string>()] = variable.value("value", "");
    }
    return env;
  };
  EXPECT_EQ(env_of(made)["HEADRACE_NUM_WORKERS"], "8");
  EXPECT_EQ(env_of(made)["HEADRACE_WORKER_INDEX"], "told-when-the-pod-is-made");
  EXPECT_FALSE(made["spec"].contains("subdomain")) << "the JobSet's";

  const json created = PodOfSet(made);
  const json placed = Answer(handler, "/inject-pod", CreationOf(created));
  ASSERT_EQ(placed["allowed"], true) << placed;
  const json pod = Patched(created, placed);
  EXPECT_EQ(pod["spec"]["initContainers"].size(), 1u);
  EXPECT_EQ(env_of(pod)["HEADRACE_WORKER_INDEX"], "7");
  EXPECT_EQ(env_of(pod)["HEADRACE_NUM_WORKERS"], "8");
  EXPECT_EQ(env_of(pod)["HEADRACE_RUN_ID"], "s1/workers/0");
  EXPECT_EQ(env_of(pod)["HEADRACE_COORDINATOR"], "set-workers-0-0.set:9465");
  EXPECT_EQ(pod["spec"]["initContainers"][0]["resources"], made["spec"]["initContainers"][0]["resources"])
      << "what was counted";

  // Had the template not asked, the pod would be the same.
  const json bare = PodOfSet(JobCreation()["object"]["spec"]["template"]);
  EXPECT_EQ(pod, Patched(bare, Answer(handler, "/inject-pod", CreationOf(bare))));
  // And again changes nothing.
  EXPECT_FALSE(Answer(handler, "/inject-pod", CreationOf(pod)).contains("patch"));
  request["object"] = set;
  EXPECT_FALSE(Answer(handler, "/inject-template", request).contains("patch"));
}

TEST_F(ServerTest, AJobSetIsRefusedNamingTheJob) {
  const json missing = Answer(Handler(), "/inject-template", JobSetCreation());
  EXPECT_EQ(missing["allowed"], false);
  EXPECT_TRUE(missing["status"]["message"].get<std::string>().starts_with("spec.replicatedJobs[1]: no Distributed"));
  inputs_.Put(NumbersInput());
  json odd = JobSetCreation();
  odd["object"]["spec"]["replicatedJobs"][1]["replicas"] = "2";
  EXPECT_EQ(Answer(Handler(), "/inject-template", odd)["status"]["message"],
            "headrace: spec.replicatedJobs[1].replicas: \"2\" is a text: write a whole number");
}

// The cache of pods is behind: the first pod of the run has not come back yet when the input changes.
TEST_F(ServerTest, ARunKeepsItsPlanThoughTheCachesLag) {
  const auto put = [&](int stop) {
    json input = *NumbersInput();
    input["spec"]["source"]["range"]["stop"] = stop;
    const Plan plan = CompilePlan(*ParseInputSpec(input["spec"]), "ml/numbers");
    config_maps_.Put(std::make_shared<const json>(json{
        {"metadata",
         {{"name", "numbers-plan-" + plan.hash}, {"namespace", "ml"}, {"labels", {{"headrace.dev/input", "numbers"}}}}},
        {"data", {{"plan.json", ToJson(plan).dump()}}}}));
    inputs_.Put(std::make_shared<const json>(input));
    return plan.hash;
  };
  const HttpHandler handler = Handler();
  const auto plan_of = [&](const char* job_uid, bool dry_run) {
    json request = CreationOf(OptedIn());
    request["dryRun"] = dry_run;
    request["object"]["metadata"]["ownerReferences"] = json::array(
        {{{"apiVersion", "example.com/v1"}, {"kind", "Gang"}, {"name", "g"}, {"uid", job_uid}, {"controller", true}}});
    const json pod = Patched(request["object"], Answer(handler, "/inject-pod", request));
    return pod["metadata"]["annotations"]["headrace.dev/injected-plan"].get<std::string>();
  };
  const std::string first = put(10);
  EXPECT_EQ(plan_of("run-1", false), first);
  EXPECT_EQ(plan_of("run-2", true), first);
  const std::string second = put(20);
  ASSERT_NE(first, second);
  EXPECT_EQ(plan_of("run-1", false), first) << "the run goes on as it began";
  EXPECT_EQ(plan_of("run-2", false), second) << "a dry run begins no run";
  EXPECT_EQ(plan_of("run-3", false), second);
}

}  // namespace
}  // namespace headrace::op
